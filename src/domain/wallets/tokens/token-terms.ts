/** Access and identity tokens live this long. */
export const TOKEN_LIFETIME_SECONDS = 3600;

/**
 * The `iss` of the tokens that the service signs.
 * CHOICE: the word of the wire with a top-level domain, which is what clients of the branded word expect.
 */
export function tokenIssuer(prefix: string): string {
  return `${prefix}.io`;
}

/** `did:service:…` in the word of the wire. */
export function subjectOf(userId: string, prefix: string): string {
  return userId.replace(/^did:service:/, `did:${prefix}:`);
}

/** The user id that a token's `sub` names. */
export function userIdOf(subject: string, prefix: string): string {
  const start = `did:${prefix}:`;
  return subject.startsWith(start) ? `did:service:${subject.slice(start.length)}` : subject;
}
