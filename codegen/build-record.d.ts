/** The inputs and outputs of a build. */
export interface BuildRecord {
  /** Path relative to the root -> size and modification time. */
  inputs: { [path: string]: string };
  outputs: string[];
  /** Files of the previous build that are not in `outputs`. */
  older: string[];
}

/** The folder of the built program. */
export const out: string;

/** The file of the record, in `out`. */
export const recordName: string;

/** The record of the last build. */
export function readRecord(): BuildRecord | undefined;

/** The size and modification time of an input, as the record has them. */
export function stateOf(path: string): string;

/** Whether the program is built, and nothing that it is made of has changed since. */
export function isBuilt(): boolean;
