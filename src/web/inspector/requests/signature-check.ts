/** The member `data.signature_check` of an error response. */
export interface SignatureCheck {
  readonly expected_payloads: readonly string[];
  readonly signatures: readonly CheckedSignature[];
  readonly parties: readonly Party[];
}

interface CheckedSignature {
  readonly index: number;
  readonly verified: boolean;
  readonly counts?: boolean;
  readonly reason?: string;
  /** The member of the payload that differs. */
  readonly differs_in?: string;
  readonly public_key?: string;
}

interface Party {
  readonly role: string;
  readonly key_quorum_id: string;
  readonly authorization_threshold: number;
  readonly counted: number;
  readonly missing: number;
  readonly public_keys: readonly { readonly public_key: string; readonly signed: boolean }[];
  readonly users: readonly { readonly user_id: string; readonly signed: boolean }[];
  readonly key_quorums: readonly { readonly key_quorum_id: string; readonly satisfied: boolean }[];
}

/** Returns the signature check in the body of a response, or undefined if there is none. */
export function signatureCheckIn(body: unknown): SignatureCheck | undefined {
  const check = (body as { data?: { signature_check?: SignatureCheck } } | null)?.data?.signature_check;
  return Array.isArray(check?.expected_payloads) ? check : undefined;
}

/** A piece of a string. Marked pieces are highlighted. */
export interface MarkedText {
  readonly text: string;
  readonly isMarked: boolean;
}

/**
 * Splits a canonical payload into pieces: each top-level member, and the punctuation between members. Members named
 * in `marked` are marked. Joined, the pieces are exactly the payload.
 */
export function markedPayload(payload: string, marked: ReadonlySet<string>): MarkedText[] {
  // If only the order of the members or their escapes differ, no single member is wrong, so the whole payload is
  // marked.
  if (marked.has('serialisation')) return [{ text: payload, isMarked: true }];
  const parts: MarkedText[] = [];
  let start = 0;
  const add = (end: number, isMarked: boolean): void => {
    if (end > start) parts.push({ text: payload.slice(start, end), isMarked });
    start = end;
  };
  for (const { name, from, to } of topLevelMembers(payload)) {
    if (!marked.has(name)) continue;
    add(from, false);
    add(to, true);
  }
  add(payload.length, false);
  return parts;
}

/** Returns the names and positions of the members of a JSON object. */
function topLevelMembers(json: string): { name: string; from: number; to: number }[] {
  const members: { name: string; from: number; to: number }[] = [];
  let depth = 0;
  let from = -1;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at]!;
    if (character === '"') {
      if (depth === 1 && from === -1) from = at;
      at = endOfString(json, at);
    } else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    const isEnd = (character === ',' && depth === 1) || depth === 0;
    if (!isEnd || from === -1) continue;
    members.push({ name: JSON.parse(json.slice(from, endOfString(json, from) + 1)), from, to: at });
    from = -1;
  }
  return members;
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at;
}
