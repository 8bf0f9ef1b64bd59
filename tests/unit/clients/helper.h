/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The test program as the client software that qm-client runs, where it is called by the name
 * "glusterfs". The first argument says what it does:
 *   exit N · kill SIGNAL · say OUT ERR · echo (input, then its own command line) · env NAME ·
 *   hang · fill BYTES · daemon PLACE (goes into the background and stays)
 */
int helper_main(int argc, char **argv);
