/** The inputs and outputs of a build. */
export interface BuildRecord {
  /** The size and modification time of each input, by its path relative to the root. */
  inputs: { [path: string]: string };
  outputs: string[];
  /** Files of the previous build that are not in `outputs`. */
  older: string[];
}

/** The folder of the built program. */
export const out: string;

/** The file of the record, in `out`. */
export const recordName: string;

/** Reads the record of the last build. Returns undefined if there is none. */
export function readRecord(): BuildRecord | undefined;

/** Returns the size and modification time of an input, in the format of the record. */
export function stateOf(path: string): string;

/** Returns whether the program is built, and no input has changed since. */
export function isBuilt(): boolean;
