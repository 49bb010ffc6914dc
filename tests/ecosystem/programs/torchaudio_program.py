"""torchaudio: spectra and their inverses, filters, resampling, augmentation, losses, models, the plumbing of
datasets.
"""

import math

import torch
import torchaudio
from torchaudio import functional, transforms

torch.manual_seed(0)
wave = torch.sin(2 * math.pi * 440 * torch.arange(4000) / 16000).unsqueeze(0)
assert transforms.MelSpectrogram(sample_rate=16000, n_mels=20)(wave).shape == (1, 20, 21)
assert transforms.MFCC(n_mfcc=8, melkwargs={"n_mels": 20})(wave).shape == (1, 8, 21)
assert transforms.LFCC(n_lfcc=8)(wave).shape == (1, 8, 21)
spectrum = transforms.Spectrogram(n_fft=400, power=None)(wave)
assert spectrum.abs()[0, :, 10].argmax().item() == 11  # 440 Hz in bins of 40 Hz
back = transforms.InverseSpectrogram(n_fft=400)(spectrum, length=4000)
assert torch.allclose(back, wave, atol=1e-4)
assert transforms.GriffinLim(n_fft=400, n_iter=4)(spectrum.abs() ** 2).shape[0] == 1
decibels = transforms.AmplitudeToDB(top_db=80)(torch.tensor([[[1.0, 0.1]]]))
assert torch.allclose(decibels, torch.tensor([[[0.0, -10.0]]]))
assert transforms.TimeStretch(n_freq=201, fixed_rate=2.0)(spectrum).shape[-1] == 11
assert functional.resample(wave, 16000, 8000).shape == (1, 2000)
assert transforms.Resample(16000, 22050)(wave).shape == (1, 5513)
codes = transforms.MuLawEncoding()(wave)
assert codes.dtype == torch.int64 and (transforms.MuLawDecoding()(codes) - wave).abs().max() < 0.05
masked = transforms.FrequencyMasking(30)(transforms.TimeMasking(5)(spectrum.abs()))
assert masked.shape == (1, 201, 21)

low = functional.lowpass_biquad(torch.ones(1, 200), 16000, 2000.0)
assert abs(low[0, -1].item() - 1) < 0.01  # what does not move passes
signal = torch.randn(2, 50, dtype=torch.float64)
a, b = torch.tensor([1.0, -0.5], dtype=torch.float64), torch.tensor([0.5, 0.0], dtype=torch.float64)
filtered, last = functional.lfilter(signal, a, b, clamp=False), torch.zeros(2, dtype=torch.float64)
for i in range(50):
    last = 0.5 * signal[:, i] + 0.5 * last
    assert torch.allclose(filtered[:, i], last)
assert functional.fftconvolve(torch.ones(3), torch.ones(2)).tolist() == [1.0, 2.0, 2.0, 1.0]
assert functional.edit_distance("kitten", "sitting") == 3
assert functional.spectral_centroid(wave, 16000, 0, torch.hann_window(400), 400, 200, 400).mean() < 1000
assert functional.vad(wave, 16000).dim() == 2 and functional.deemphasis(functional.preemphasis(wave)).allclose(
    wave, atol=1e-4
)

model = torchaudio.models.Conformer(input_dim=8, num_heads=2, ffn_dim=16, num_layers=1, depthwise_conv_kernel_size=3)
assert model(torch.randn(2, 5, 8), torch.tensor([5, 3]))[0].shape == (2, 5, 8)
wav2vec = torchaudio.models.wav2vec2_model(
    extractor_mode="group_norm",
    extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2)],
    extractor_conv_bias=False,
    encoder_embed_dim=16,
    encoder_projection_dropout=0.0,
    encoder_pos_conv_kernel=8,
    encoder_pos_conv_groups=2,
    encoder_num_layers=1,
    encoder_num_heads=2,
    encoder_attention_dropout=0.0,
    encoder_ff_interm_features=32,
    encoder_ff_interm_dropout=0.0,
    encoder_dropout=0.0,
    encoder_layer_norm_first=False,
    encoder_layer_drop=0.0,
    aux_num_out=6,
)
out, _ = wav2vec(torch.randn(1, 400))
out.sum().backward()
assert out.shape[-1] == 6 and wav2vec.aux.weight.grad is not None
assert torchaudio.models.DeepSpeech(n_feature=8, n_hidden=16, n_class=4)(torch.randn(1, 1, 10, 8)).shape == (1, 10, 4)
separated = torchaudio.models.ConvTasNet(num_sources=2, msk_num_layers=2, msk_num_stacks=1)(torch.randn(1, 1, 400))
assert separated.shape == (1, 2, 400)
assert torchaudio.datasets.LIBRISPEECH and torchaudio.pipelines.WAV2VEC2_BASE.sample_rate == 16000
