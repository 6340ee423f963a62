/** The lifetime of access and identity tokens. */
export const TOKEN_LIFETIME_SECONDS = 3600;

/**
 * The `iss` of the service's tokens. CHOICE: the wire prefix with a top-level domain, which branded clients expect.
 */
export function tokenIssuer(prefix: string): string {
  return `${prefix}.io`;
}

/** `did:service:…` with the wire prefix. */
export function subjectOf(userId: string, prefix: string): string {
  return userId.replace(/^did:service:/, `did:${prefix}:`);
}

/** The user id that a token's `sub` names. */
export function userIdOf(subject: string, prefix: string): string {
  const start = `did:${prefix}:`;
  return subject.startsWith(start) ? `did:service:${subject.slice(start.length)}` : subject;
}
