import type { Block } from '../../pool.ts';
import type { Frame } from '../frame.ts';
import type { EvmState } from '../state.ts';

/** A call of a program. Addresses are lower-case 0x hex. `value` has already moved to the program. */
export interface ProgramCall {
  readonly from: string;
  readonly value: bigint;
  readonly data: Uint8Array;
}

/** The latest state, for read-only calls. */
export interface ProgramView {
  readonly state: EvmState;
  readonly block: Block;
}

/** A contract that simulated chains execute without its bytecode. */
export interface Program {
  /** Returns the return data, if the function has any. Throws RevertError. */
  run(frame: Frame, call: ProgramCall): Uint8Array | undefined;
  /**
   * The return data. Undefined for a function that the program does not have: it may be one of its token.
   * Throws RevertError.
   */
  read(view: ProgramView, data: Uint8Array): Uint8Array | undefined;
}
