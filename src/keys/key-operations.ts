import { createHmac, createPrivateKey, sign } from 'node:crypto';
import { systemClock, systemEntropy } from '../adapters/runtime.ts';
import { changedPolicy, policyDigest, sealName } from '../engine/authorization/policy-seals.ts';
import { changedQuorum, type KnownQuorums } from '../engine/authorization/quorum-records.ts';
import { type BuildingSettings, namedContracts } from '../engine/authorization/requested/built-part.ts';
import { UnauthorizedUseError } from '../engine/authorization/signed-evidence.ts';
import { createSigningBudget, type SigningJournal } from '../engine/authorization/signing-budget.ts';
import {
  authorityDigest,
  changedAuthority,
  type OpenPolicySecret,
  requireAuthorizedTask,
  type UseOccasion,
  type WalletAuthority,
} from '../engine/authorization/wallet-authority.ts';
import { ed25519PublicKey, ed25519Sign } from '../engine/crypto/ed25519.ts';
import { base58ToBytes, bytesToHex } from '../engine/crypto/encoding.ts';
import { sealHpke } from '../engine/crypto/hpke.ts';
import { p256KeyPairFromSeed } from '../engine/crypto/p256.ts';
import { type ChainType, deriveWallet, isChainType } from '../engine/signing/chains.ts';
import { signWithKey } from '../engine/signing/sign-with-key.ts';
import {
  decodeWalletSecret,
  exportedWalletKey,
  importedWalletKey,
  isFromPhrase,
  keyBytesOf,
  newWalletKey,
  type WalletKeyMaterial,
} from '../engine/signing/wallet-key.ts';
import type { KeyStore, SealBinding, SealedKey } from '../ports/key-store.ts';
import type { Clock, Entropy } from '../ports/runtime.ts';
import { importOperations } from './import-operations.ts';
import {
  createMasterKeyEnvelopes,
  KeyStoreError,
  type MasterKeyEnvelopes,
  type MasterKeyEnvelopesOptions,
  QUORUM_CHANGES,
  requireVerifiedChanges,
  sealOpener,
} from './master-keys.ts';
import type { PhraseKeys } from './sandbox-keys.ts';
import { type UserLogin, voucherOperations } from './voucher-operations.ts';

/** The purposes of the secrets that the server may read. Private keys have other purposes. */
const plainPurposes: ReadonlySet<string> = new Set([
  'webhook-secret',
  'deposit-instructions',
  'test-account-code',
  'audit-digest-key',
  // A value that the server seals and opens to check its key store.
  'doctor',
  // A known value that verifies a master key.
  '',
]);

export interface KeyStoreOptions extends MasterKeyEnvelopesOptions {
  /** The randomness for new keys. Default: `entropy`. */
  readonly keyEntropy?: Entropy;
  /** The clock that decides whether signed requests have expired. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Derives the keys of new wallets from phrases. Default: new phrases from `keyEntropy`. */
  readonly phraseKeys?: PhraseKeys | undefined;
  /** The login providers whose tokens this key store verifies, by app id. */
  readonly logins?: ReadonlyMap<string, UserLogin> | undefined;
  /**
   * For transactions that the server builds. Without it, fees have no ceiling, and no transaction is compared with its
   * request.
   */
  readonly building?: BuildingSettings | undefined;
  /**
   * The maximum number of transactions that can take effect for one signed request; see `createSigningBudget`.
   * Transactions with the same nonce count once. Default: unlimited.
   */
  readonly signaturesPerRequest?: number | undefined;
  /** Stores the number of signatures of each request. Default: it is lost at a restart. */
  readonly journal?: SigningJournal | undefined;
}

export function createKeyStore({
  keyEntropy,
  clock,
  phraseKeys,
  logins,
  building,
  signaturesPerRequest,
  journal,
  ...options
}: KeyStoreOptions): KeyStore {
  return keyStoreOn(createMasterKeyEnvelopes(options), keyEntropy ?? options.entropy, {
    ...{ clock, phraseKeys, logins, building, signaturesPerRequest, journal },
  });
}

const EPHEMERAL_SEED_BYTES = 32;
const P256_SEED_BYTES = 48;
const ED25519_SEED_BYTES = 32;
const FINGERPRINT_KEY_BYTES = 32;
const POLICY_SECRET_BYTES = 32;

/**
 * Returns the operations of a key store whose secrets are sealed in these envelopes.
 * NOTE: every operation draws from `entropy` before it awaits anything, so concurrent requests draw in the order in
 * which they start. A seeded sandbox therefore repeats its keys.
 */
export function keyStoreOn(
  envelopes: MasterKeyEnvelopes,
  entropy: Entropy,
  {
    clock = systemClock,
    phraseKeys,
    logins = new Map(),
    building,
    signaturesPerRequest: maximum,
    journal,
  }: Omit<KeyStoreOptions, keyof MasterKeyEnvelopesOptions>,
): KeyStore {
  const sealAndWipe = (secret: Uint8Array, binding: SealBinding): Promise<SealedKey> =>
    envelopes.seal(secret, binding).finally(() => secret.fill(0));

  const drawWalletKey = (chainType: ChainType): Promise<WalletKeyMaterial> =>
    phraseKeys !== undefined && isFromPhrase(chainType)
      ? phraseKeys.draw(chainType)
      : newWalletKey(chainType, entropy.bytes(keyBytesOf(chainType)));

  const sealWalletKey = async ({ secretBytes, ...facts }: WalletKeyMaterial, binding: SealBinding) => ({
    ...facts,
    sealed: await sealAndWipe(secretBytes, binding),
  });
  const open = sealOpener(envelopes);
  const openPolicySecret =
    (appId: string): OpenPolicySecret =>
    ({ id: rowId, seal }, authority) =>
      open(seal, { purpose: 'policy', rowId, appId, authority });
  const requireVerified = ({ quorums }: Pick<KnownQuorums, 'quorums'>, { appId }: SealBinding) =>
    requireVerifiedChanges(quorums, appId, open);
  const budget =
    maximum === undefined
      ? undefined
      : createSigningBudget({ most: maximum, recorded: journal?.recorded ?? [] });
  const imports = importOperations(envelopes, entropy);
  const vouchers = voucherOperations(envelopes, { logins, clock });

  return {
    get currentMasterKeyId() {
      return envelopes.currentMasterKeyId;
    },
    get loginApps() {
      return [...logins.keys()];
    },
    get contracts() {
      return building && namedContracts(building);
    },
    // INVARIANT: no caller can forge a seal that proves that this key store has verified a change or generated a key.
    seal: async (secret, binding) => envelopes.seal(secret, requirePlain(binding)),
    rewrap: imports.rewrap,
    async open(sealed, binding) {
      return envelopes.withSecret(sealed, requirePlain(binding), (secret) => secret.slice());
    },

    async createWalletKey(binding, authority) {
      const chainType = chainTypeOf(binding);
      return sealWalletKey(await drawWalletKey(chainType), bindingUnder(binding, authority));
    },
    async signWithWallet(sealed, binding, task, claim) {
      const chainType = chainTypeOf(binding);
      const { method, params } = task;
      const occasion = occasionOf(binding, clock);
      const signing = {
        task: { kind: 'sign', method, params },
        openPolicySecret: openPolicySecret(binding.appId),
        building,
      } as const;
      if (claim !== undefined) await requireVerified(claim, binding);
      const authorization =
        claim &&
        (await vouchers.withReader(claim, binding.appId, (readVoucher) =>
          requireAuthorizedTask({ ...claim, readVoucher }, occasion, signing),
        ));
      let recorded: Promise<void> | undefined;
      const signature = await envelopes.withSecret(
        sealed,
        bindingUnder(binding, claim?.authority),
        async (secret) => {
          const { privateKey } = decodeWalletSecret(secret);
          await requireAddresses(chainType, privateKey, authorization?.addresses ?? []);
          if (authorization?.spending !== undefined && budget !== undefined) {
            // Read the clock again, because opening the key may have taken long.
            const changes = budget.spend(authorization.spending, clock.now());
            recorded = journal?.record(changes, budget.all);
            recorded?.catch(() => undefined);
          }
          return signWithKey(chainType, privateKey, task);
        },
      );
      // INVARIANT: the count is on disk before the signature is returned.
      await recorded;
      return signature;
    },
    async exportWalletKey(sealed, binding, { form, recipient }, claim) {
      const chainType = chainTypeOf(binding);
      const ephemeralSeed = entropy.bytes(EPHEMERAL_SEED_BYTES);
      if (claim !== undefined) {
        const task = { kind: 'export', form, recipient } as const;
        await requireVerified(claim, binding);
        const exporting = { task, openPolicySecret: openPolicySecret(binding.appId) };
        await vouchers.withReader(claim, binding.appId, (readVoucher) =>
          requireAuthorizedTask({ ...claim, readVoucher }, occasionOf(binding, clock), exporting),
        );
      }
      return envelopes.withSecret(sealed, bindingUnder(binding, claim?.authority), async (secret) => {
        const plaintext = exportedWalletKey(chainType, decodeWalletSecret(secret), form);
        if (plaintext === undefined) return undefined;
        return sealHpke({ recipientPublicKeyBytes: recipient, plaintext, ephemeralSeed }).finally(() =>
          plaintext.fill(0),
        );
      });
    },

    async changeAuthority(sealed, binding, claim) {
      chainTypeOf(binding);
      await requireVerified(claim, binding);
      const authority = await vouchers.withReader(claim, binding.appId, (readVoucher) =>
        changedAuthority({ ...claim, readVoucher }, occasionOf(binding, clock)),
      );
      return {
        authority,
        sealed: await envelopes.withSecret(sealed, bindingUnder(binding, claim.authority), (secret) =>
          envelopes.seal(secret, bindingUnder(binding, authority)),
        ),
      };
    },
    // NOTE: no evidence is required. The key has no authority yet, so any caller that can use it could also export it
    // and import it again under an authority.
    async sealUnderAuthority(sealed, binding, authority) {
      chainTypeOf(binding);
      return envelopes.withSecret(sealed, bindingUnder(binding, undefined), (secret) =>
        envelopes.seal(secret, bindingUnder(binding, authority)),
      );
    },

    async sealPolicy(binding, content) {
      // Does not draw from `entropy`: a seeded sandbox generates the same keys whether policies have owners or not.
      const secret = systemEntropy.bytes(POLICY_SECRET_BYTES);
      const name = sealName(secret);
      const text = JSON.stringify({ ...content, appId: binding.appId, id: binding.rowId });
      return { name, content: text, sealed: await sealAndWipe(secret, policyBinding(binding, text)) };
    },
    async changePolicy(sealed, binding, change) {
      const { rowId: policyId, appId } = binding;
      await requireVerified(change, binding);
      const changed = await vouchers.withReader(change, appId, (readVoucher) =>
        changedPolicy({ ...change, readVoucher }, { policyId, appId, nowMs: clock.now() }),
      );
      const content = JSON.stringify(changed);
      return {
        content,
        sealed: await envelopes.withSecret(sealed, policyBinding(binding, change.content), (secret) =>
          envelopes.seal(secret, policyBinding(binding, content)),
        ),
      };
    },

    async sealQuorumChange({ purpose, rowId: quorumId, appId }, record, vouching) {
      const binding = requirePurpose({ purpose, rowId: quorumId, appId }, QUORUM_CHANGES);
      const before = { ...record, changes: record.changes.slice(0, -1) };
      await requireVerified({ quorums: [before, ...(record.changes.at(-1)?.quorums ?? [])] }, binding);
      const occasion = { quorumId, appId, nowMs: clock.now() };
      const authority = await vouchers.withReader({ vouching }, appId, (readVoucher) =>
        changedQuorum(record, occasion, readVoucher),
      );
      return sealAndWipe(systemEntropy.bytes(POLICY_SECRET_BYTES), { ...binding, authority });
    },

    createImportKey: imports.createKey,
    async importWalletKey(importKey, importBinding, submitted, walletBinding, authority) {
      const { form, index } = submitted;
      const chainType = chainTypeOf(walletBinding);
      const content = await imports.open(importKey, importBinding, submitted);
      const material = await importedWalletKey(chainType, content, { form, index });
      return sealWalletKey(material, bindingUnder(walletBinding, authority));
    },

    async createTokenKey(binding) {
      const { privateKeyPkcs8, publicKey } = drawP256(entropy);
      const secret = new Uint8Array(Buffer.from(privateKeyPkcs8, 'base64'));
      return { sealed: await sealAndWipe(secret, requirePurpose(binding, 'app-signing-key')), publicKey };
    },
    signToken: async (sealed, binding, text) =>
      envelopes.withSecret(sealed, requirePurpose(binding, 'app-signing-key'), (pkcs8) => {
        // A view of the bytes instead of a copy, because `withSecret` wipes them.
        const view = Buffer.from(pkcs8.buffer, pkcs8.byteOffset, pkcs8.byteLength);
        const key = createPrivateKey({ key: view, format: 'der', type: 'pkcs8' });
        return new Uint8Array(sign('sha256', Buffer.from(text, 'utf8'), { key, dsaEncoding: 'ieee-p1363' }));
      }),

    async createUserKey(recipient, login) {
      const { privateKeyPkcs8, publicKey } = drawP256(entropy);
      const ephemeralSeed = recipient && entropy.bytes(EPHEMERAL_SEED_BYTES);
      const voucher = login && (await vouchers.vouchFor(publicKey, login, recipient));
      const vouched = voucher === undefined ? { publicKey } : { publicKey, voucher };
      if (recipient === undefined) return { ...vouched, privateKey: privateKeyPkcs8 };
      const privateKey = await sealHpke({
        recipientPublicKeyBytes: recipient,
        plaintext: new TextEncoder().encode(privateKeyPkcs8),
        ephemeralSeed: ephemeralSeed!,
      });
      return { ...vouched, privateKey };
    },
    createVoucherKey: vouchers.createKey,

    createFingerprintKey: async (binding) =>
      sealAndWipe(
        Uint8Array.from(entropy.bytes(FINGERPRINT_KEY_BYTES)),
        requirePurpose(binding, 'fingerprint-key'),
      ),
    fingerprint: async (sealed, binding, text) =>
      envelopes.withSecret(sealed, requirePurpose(binding, 'fingerprint-key'), (secret) =>
        createHmac('sha256', secret).update(text, 'utf8').digest('hex'),
      ),

    async createLogKey(binding) {
      // Does not draw from `entropy`, so that a seeded sandbox generates the same keys with and without an audit log.
      const seed = systemEntropy.bytes(ED25519_SEED_BYTES);
      const publicKey = ed25519PublicKey(seed);
      return { sealed: await sealAndWipe(seed, requirePurpose(binding, 'audit-log-key')), publicKey };
    },
    signCheckpoint: async (sealed, binding, text) =>
      envelopes.withSecret(sealed, requirePurpose(binding, 'audit-log-key'), (seed) =>
        ed25519Sign(Buffer.from(text, 'utf8'), seed),
      ),
  };
}

function drawP256(entropy: Entropy) {
  const seed = entropy.bytes(P256_SEED_BYTES);
  const pair = p256KeyPairFromSeed(seed);
  seed.fill(0);
  return pair;
}

/** Returns the binding of a wallet's key. INVARIANT: it opens only with this authority, whatever callers present. */
function bindingUnder(
  { purpose, rowId, appId }: SealBinding,
  authority: WalletAuthority | undefined,
): SealBinding {
  const binding = { purpose, rowId, appId };
  return authority === undefined ? binding : { ...binding, authority: authorityDigest(authority) };
}

/** Returns the binding of a policy's secret. INVARIANT: it opens only with content that the owner has approved. */
function policyBinding({ purpose, rowId, appId }: SealBinding, content: string): SealBinding {
  return { ...requirePurpose({ purpose, rowId, appId }, 'policy'), authority: policyDigest(content) };
}

/**
 * Requires that the addresses in a signed request are the addresses of the key. Policies use the address to recognize
 * calls that a wallet makes to itself. On Tron they also use it to see whose funds a smart contract moves.
 * @param addresses on Tron in base58, or in hex with the prefix `41`.
 */
async function requireAddresses(
  chainType: ChainType,
  privateKey: Uint8Array,
  addresses: readonly string[],
): Promise<void> {
  if ((chainType !== 'ethereum' && chainType !== 'tron') || addresses.length === 0) return;
  const { address: own } = await deriveWallet(chainType, privateKey);
  const spellings = [own.toLowerCase()];
  // The Base58 text encodes the prefix 41, the account and a checksum. Smart contracts use the first 21 bytes, in hex.
  if (chainType === 'tron') spellings.push(bytesToHex(base58ToBytes(own).subarray(0, 21)));
  if (addresses.every((address) => spellings.includes(address.toLowerCase()))) return;
  throw new UnauthorizedUseError('expected the address of the wallet');
}

function occasionOf({ rowId: walletId, appId, purpose }: SealBinding, clock: Clock): UseOccasion {
  return { walletId, appId, chainType: purpose, nowMs: clock.now() };
}

function chainTypeOf({ purpose }: SealBinding): ChainType {
  if (isChainType(purpose)) return purpose;
  throw new KeyStoreError("expected the purpose of a wallet's key");
}

/** Returns the binding without an authority, if its purpose is one of `plainPurposes`. */
function requirePlain({ purpose, rowId, appId }: SealBinding): SealBinding {
  if (plainPurposes.has(purpose)) return { purpose, rowId, appId };
  throw new KeyStoreError('a secret of this kind does not leave the key store, and callers cannot seal one');
}

/** Requires the purpose. INVARIANT: drops the authority, so that callers cannot choose one for these secrets. */
function requirePurpose({ purpose: given, rowId, appId }: SealBinding, purpose: string): SealBinding {
  const binding = { purpose: given, rowId, appId };
  if (given === purpose) return binding;
  throw new KeyStoreError(`expected the purpose \`${purpose}\``);
}
