// How a random sample moves with the parameters of its distribution, when the randomness behind it is held fixed: dx/da
// = -(dF/da) / (dF/dx) for the distribution function F. In double; the caller rounds.
#pragma once

namespace cresset {

// d x / d shape of a sample x from Gamma(shape, 1).
double gamma_sample_gradient(double shape, double x);

// For one component x of a sample from Dirichlet(..., concentration, ...) whose concentrations add up to `total`: d x /
// d concentration of Beta(concentration, total - concentration), divided by 1 - x. The Jacobian of the whole sample
// follows from these.
double dirichlet_sample_gradient(double x, double concentration, double total);

}  // namespace cresset
