// Source: C2SP tlog-proof.

const HEADER = 'c2sp.org/tlog-proof@v1';

/** The proof that an entry is in a log. It can be verified offline. */
export interface LoggedProof {
  readonly index: number;
  /** The hashes from the leaf's sibling to the root's child. */
  readonly hashes: readonly Uint8Array[];
  /** The signed checkpoint, as a note. */
  readonly checkpoint: string;
}

export function writeProof({ index, hashes, checkpoint }: LoggedProof): string {
  const lines = [HEADER, `index ${index}`, ...hashes.map((each) => Buffer.from(each).toString('base64'))];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

/** Parses a proof. Returns undefined for a string in another format. */
export function readProof(text: string): LoggedProof | undefined {
  const end = text.indexOf('\n\n');
  const [header, ...lines] = text.slice(0, end === -1 ? 0 : end).split('\n');
  if (header !== HEADER) return undefined;
  if (lines[0]?.startsWith('extra ')) lines.shift();
  const [, index] = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '') ?? [];
  const hashes = lines.map((line) => Buffer.from(line, 'base64'));
  if (index === undefined || hashes.some(({ length }) => length !== 32)) return undefined;
  return { index: Number(index), hashes, checkpoint: text.slice(end + 2) };
}
