#include "dispatch/registration.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/levels.h"

namespace cresset {
namespace {

constinit const Topic* last_topic = nullptr;

void register_formulas(Registry& r) {
  const PointwiseLoops* loops = BY_LEVEL(kPointwiseLoops);
  for (int i = 0; i < kPointwiseCount; ++i) r.add_pointwise(kPointwiseDefinitions[i], loops[i]);
}

}  // namespace

Topic::Topic(const char* name, Stage stage, void (*add)(Registry&))
    : name(name), stage(stage), add(add), next(last_topic) {
  last_topic = this;
}

void register_operators() {
  Registry& r = Registry::instance();
  register_formulas(r);
  std::vector<const Topic*> topics;
  for (const Topic* t = last_topic; t; t = t->next) topics.push_back(t);
  std::sort(topics.begin(), topics.end(), [](const Topic* a, const Topic* b) {
    return a->stage != b->stage ? a->stage < b->stage : std::string_view(a->name) < b->name;
  });
  for (const Topic* t : topics) t->add(r);
}

}  // namespace cresset
