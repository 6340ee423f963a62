import { hash, type KeyObject } from 'node:crypto';
import { decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose';
import { systemEntropy } from '../adapters/runtime.ts';
import { sealName } from '../engine/authorization/policy-seals.ts';
import type { ReadQuorums } from '../engine/authorization/quorum-records.ts';
import {
  makeVoucher,
  type ReadVoucher,
  type StoredVoucherKey,
  userIdIn,
  type Voucher,
  voucherReader,
} from '../engine/authorization/user-vouchers.ts';
import type { UserLogin as AskedLogin, KeyStore, SealBinding } from '../ports/key-store.ts';
import type { Clock } from '../ports/runtime.ts';
import { KeyStoreError, type MasterKeyEnvelopes, sealedOf } from './master-keys.ts';

/** How the key store verifies the tokens that an app's own login issues. */
export interface UserLogin {
  readonly keys: readonly LoginKey[];
  /** The claim that contains the user's id. */
  readonly userIdClaim: string;
  /** The accepted `aud` values. If empty, every `aud` is accepted. */
  readonly audiences: readonly string[];
}

interface LoginKey {
  readonly algorithm: 'RS256' | 'ES256';
  /** The `kid` of the key; undefined for a key that verifies tokens with any `kid`. */
  readonly kid: string | undefined;
  readonly key: KeyObject;
}

/**
 * Returns the id of the user in a token of the app's own login; undefined for an invalid token. A token with `cnf.jkt`
 * (RFC 7800, RFC 7638) is valid only for the recipient whose key it names.
 *
 * @param recipient the P-256 point (65 bytes) to which the user's key is encrypted; undefined if the user's key is
 * returned in plain form.
 */
async function subjectOfToken(
  login: UserLogin,
  token: string,
  { recipient, nowMs }: { readonly recipient: Uint8Array | undefined; readonly nowMs: number },
): Promise<string | undefined> {
  const payload = await verifiedPayload(login, token, nowMs);
  if (payload === undefined || !isFor(payload, recipient)) return undefined;
  return userIdIn(payload[login.userIdClaim]);
}

async function verifiedPayload(
  { keys, audiences }: UserLogin,
  token: string,
  nowMs: number,
): Promise<JWTPayload | undefined> {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    for (const { algorithm, kid: name, key } of keys) {
      if (algorithm !== alg || (kid !== undefined && name !== undefined && kid !== name)) continue;
      const verified = await jwtVerify(token, key, {
        algorithms: [algorithm],
        requiredClaims: ['exp'],
        currentDate: new Date(nowMs),
        ...(audiences.length === 0 ? {} : { audience: [...audiences] }),
      }).catch(() => undefined);
      if (verified !== undefined) return verified.payload;
    }
  } catch {
    // The token is not a JWT.
  }
  return undefined;
}

function isFor({ cnf }: JWTPayload, recipient: Uint8Array | undefined): boolean {
  if (cnf === undefined) return true;
  const { jkt } = (cnf ?? {}) as { jkt?: unknown };
  return recipient !== undefined && jkt === thumbprint(recipient);
}

/** Returns the SHA-256 of the JWK of a P-256 key, base64url (RFC 7638 §3). */
function thumbprint(point: Uint8Array): string {
  const bytes = Buffer.from(point);
  const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33, 65)].map((part) => part.toString('base64url'));
  return hash('sha256', `{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`, 'base64url');
}

const VOUCHER_KEY_BYTES = 32;
const VOUCHER_PURPOSE = 'voucher-key';

/** CHOICE: the maximum lifetime of a voucher for a user's key, even if the caller requests a longer one. */
const MAX_LIFETIME_MS = 60 * 60_000;

interface VoucherParts {
  /** The logins whose tokens are verified, by app id. */
  readonly logins: ReadonlyMap<string, UserLogin>;
  readonly clock: Clock;
}

/** Returns the operations that issue vouchers for the keys of users, and that read these vouchers later. */
export function voucherOperations(envelopes: MasterKeyEnvelopes, { logins, clock }: VoucherParts) {
  const withSecret = <T>(
    { id: rowId, seal }: StoredVoucherKey,
    appId: string,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T> => envelopes.withSecret(sealedOf(seal), { purpose: VOUCHER_PURPOSE, rowId, appId }, use);

  return {
    /**
     * Runs `work` with a function that reads the vouchers of an app, or with undefined if the call has no voucher key.
     */
    async withReader<T>(
      { vouching }: Pick<ReadQuorums, 'vouching'>,
      appId: string,
      work: (readVoucher: ReadVoucher | undefined) => T | Promise<T>,
    ): Promise<T> {
      if (vouching === undefined) return work(undefined);
      return withSecret(vouching.key, appId, (secret) =>
        work(voucherReader(secret, { name: sealName(secret), appId })),
      );
    },

    /** Returns a voucher for a user's key; undefined if the app has no login or the token is not valid for it. */
    async vouchFor(
      publicKey: string,
      { appId, token, expiresAtMs, voucherKey }: AskedLogin,
      recipient: Uint8Array | undefined,
    ): Promise<Voucher | undefined> {
      const nowMs = clock.now();
      const login = logins.get(appId);
      const subject = login && (await subjectOfToken(login, token, { recipient, nowMs }));
      if (subject === undefined) return undefined;
      const ends = Math.min(expiresAtMs, nowMs + MAX_LIFETIME_MS);
      return withSecret(voucherKey, appId, (secret) =>
        makeVoucher(secret, { appId, subject, publicKey, expiresAtMs: ends }),
      );
    },

    createKey: (async ({ purpose, rowId, appId }: SealBinding) => {
      if (purpose !== VOUCHER_PURPOSE) throw new KeyStoreError(`expected the purpose \`${VOUCHER_PURPOSE}\``);
      // Does not draw from the seeded entropy, so that a seeded sandbox generates the same keys whether an app has a
      // login or not.
      const secret = systemEntropy.bytes(VOUCHER_KEY_BYTES);
      const name = sealName(secret);
      const sealed = await envelopes.seal(secret, { purpose, rowId, appId }).finally(() => secret.fill(0));
      return { name, sealed };
    }) satisfies KeyStore['createVoucherKey'],
  };
}
