#include "../tensor.hpp"
