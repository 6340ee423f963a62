import { readFileSync } from 'node:fs';

/** One known answer. Its fields are named in the file it comes from; `source` names its origin. */
// biome-ignore lint/suspicious/noExplicitAny: each kind of case has its own fields, and the tests assert them.
export type VectorCase = Record<string, any> & { readonly source: string };

/** The cases of one kind in a file of `test/vectors`; none when the file has none of the kind. */
export function readVectors(name: string, kind: string): VectorCase[] {
  const text = readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8');
  return (JSON.parse(text) as Record<string, VectorCase[]>)[kind] ?? [];
}
