#pragma once
#include "../hush_emulate.h"

/// Checks every primitive that the emulated device has.
void check_conformance(const HushEmulation& emulation);
