import type { ReadQuorums } from '../../authorization/parties.ts';
import { sealName } from '../../authorization/policy-seals.ts';
import {
  makeVoucher,
  type ReadVoucher,
  type StoredVoucherKey,
  type Voucher,
  voucherReader,
} from '../../authorization/user-vouchers.ts';
import type { Clock } from '../../ports/clock.ts';
import type { UserLogin as AskedLogin, KeyVault, SealBinding } from '../../ports/key-vault.ts';
import { systemEntropy } from '../entropy.ts';
import { subjectOfToken, type UserLogin } from './login-token.ts';
import { sealedOf } from './seal-opener.ts';
import { VaultError } from './vault-error.ts';
import type { MasterKeyVault } from './vault-master-key.ts';

const VOUCHER_KEY_BYTES = 32;
const VOUCHER_PURPOSE = 'voucher-key';

/** CHOICE: the longest that the vault vouches for a user's key, whatever the caller asks for. */
const MAX_LIFETIME_MS = 60 * 60_000;

interface VoucherParts {
  /** By app: the logins whose tokens are verified. */
  readonly logins: ReadonlyMap<string, UserLogin>;
  readonly clock: Clock;
}

/** How a vault vouches for the keys that it draws for users, and recognizes them. */
export function voucherOperations(envelopes: MasterKeyVault, { logins, clock }: VoucherParts) {
  const withSecret = <T>(
    { id: rowId, seal }: StoredVoucherKey,
    appId: string,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T> => envelopes.withSecret(sealedOf(seal), { purpose: VOUCHER_PURPOSE, rowId, appId }, use);

  return {
    /** Runs `work` with what reads the vouchers of an app; with undefined if the caller has none. */
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

    /** Undefined unless the token is one of the app's login. */
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
      if (purpose !== VOUCHER_PURPOSE) throw new VaultError(`expected the purpose \`${VOUCHER_PURPOSE}\``);
      // Not from the entropy of other keys: a seeded sandbox draws the same ones whether an app has a login or not.
      const secret = systemEntropy.bytes(VOUCHER_KEY_BYTES);
      const name = sealName(secret);
      const sealed = await envelopes.seal(secret, { purpose, rowId, appId }).finally(() => secret.fill(0));
      return { name, sealed };
    }) satisfies KeyVault['createVoucherKey'],
  };
}
