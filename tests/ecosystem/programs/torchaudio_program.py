"""torchaudio: spectra, filters, resampling, a model."""

import torch
import torchaudio

wave = torch.randn(1, 4000)
assert torchaudio.transforms.MelSpectrogram(sample_rate=16000, n_mels=20)(wave).shape == (1, 20, 21)
assert torchaudio.transforms.MFCC(n_mfcc=8, melkwargs={"n_mels": 20})(wave).shape == (1, 8, 21)
assert torchaudio.functional.resample(wave, 16000, 8000).shape == (1, 2000)
low = torchaudio.functional.lowpass_biquad(torch.ones(1, 200), 16000, 2000.0)
assert abs(low[0, -1].item() - 1) < 0.01  # what does not move passes
model = torchaudio.models.Conformer(input_dim=8, num_heads=2, ffn_dim=16, num_layers=1, depthwise_conv_kernel_size=3)
assert model(torch.randn(2, 5, 8), torch.tensor([5, 3]))[0].shape == (2, 5, 8)
