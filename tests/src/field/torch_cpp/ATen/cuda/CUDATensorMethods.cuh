#include "../../tensor.hpp"
