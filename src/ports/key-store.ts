import type { PolicyChange, PolicyContent } from '../engine/authorization/policy-seals.ts';
import type { KnownQuorums, QuorumRecord } from '../engine/authorization/quorum-records.ts';
import type { StoredVoucherKey, Voucher } from '../engine/authorization/user-vouchers.ts';
import type { KeyUseClaim, WalletAuthority } from '../engine/authorization/wallet-authority.ts';
import type { HpkeParameters } from '../engine/crypto/hpke.ts';
import type { SigningMethod, SigningMethods, SigningTask } from '../engine/signing/sign-with-key.ts';
import type { WalletKeyFacts } from '../engine/signing/wallet-key.ts';

/** What a sealed secret is bound to. It cannot be opened under any other binding. */
export interface SealBinding {
  /** What the secret is for: the chain type for a wallet's key, or another name. */
  readonly purpose: string;
  /** The row that contains the secret. */
  readonly rowId: string;
  readonly appId: string;
  /**
   * The digest of a wallet's authority, or of the content of a policy. Undefined for secrets that need no
   * authorization.
   */
  readonly authority?: string;
}

/** A secret under envelope encryption, as it is stored in the database. */
export interface SealedKey {
  /** 12-byte nonce || ciphertext || 16-byte tag of the secret under its own data key. */
  sealedSecret: Uint8Array;
  /** 12-byte nonce || ciphertext || 16-byte tag of the data key under the master key. */
  wrappedDataKey: Uint8Array;
  /** Id of the master key that wrapped the data key. */
  masterKeyId: string;
}

/** A newly created or imported wallet key: the sealed secret, and the facts that are not secret. */
export interface NewWalletKey extends WalletKeyFacts {
  readonly sealed: SealedKey;
}

/** A wallet's key after it was sealed under another authority. */
export interface ChangedKey {
  readonly sealed: SealedKey;
  readonly authority: WalletAuthority;
}

/** The secret of a policy, sealed under the policy's content. */
interface SealedPolicy {
  readonly sealed: SealedKey;
  /** The JSON of the `PolicyContent`. */
  readonly content: string;
}

/** A new key pair: the sealed private key, and the public key in the format that the method specifies. */
interface NewKeyPair<PublicKey> {
  readonly sealed: SealedKey;
  readonly publicKey: PublicKey;
}

/** A new key of a user. The public key is base64 SubjectPublicKeyInfo. */
export interface NewUserKey {
  readonly publicKey: string;
  /** The private key as base64 PKCS #8, in plain text or encrypted to a recipient. */
  readonly privateKey: string | HpkeMessage;
  /** The key store's proof of whose key it is. Undefined if it does not vouch for the key. */
  readonly voucher?: Voucher | undefined;
}

/** A login for which a key of the user is generated. */
export interface UserLogin {
  readonly appId: string;
  /** A token that the app's own login has issued. */
  readonly token: string;
  /** When the voucher for the key expires, Unix ms. The key store shortens it to at most an hour from now. */
  readonly expiresAtMs: number;
  readonly voucherKey: StoredVoucherKey;
}

/** A message to the holder of a P-256 key (RFC 9180, base mode). */
export interface HpkeMessage {
  /** 65 bytes. */
  readonly encapsulatedKey: Uint8Array;
  readonly ciphertext: Uint8Array;
}

/** A wallet's key, as the caller of an import has encrypted it. */
export interface SubmittedKey extends HpkeMessage {
  readonly parameters: HpkeParameters;
  readonly form: 'phrase' | 'private-key';
  /** The index of the wallet among the wallets of the phrase. Default: 0. */
  readonly index?: number | undefined;
}

/**
 * Holds the master keys, and generates, uses and encrypts all private keys. Private keys leave it only in the results
 * of `exportWalletKey` and `createUserKey`. An implementation may therefore run in a separate process; in production,
 * this is the signer.
 *
 * When a secret cannot be sealed or opened, methods reject with a `KeyStoreError`. A remote implementation that cannot
 * be reached rejects with an error that `isUnavailable` recognizes.
 */
export interface KeyStore {
  readonly currentMasterKeyId: string;
  /**
   * Whether the key store runs in this process and waits for nothing else. Other key stores are called only while the
   * caller holds no database connection.
   */
  readonly isLocal?: boolean;
  /** The apps whose logins it verifies. It vouches for the keys of their users. */
  readonly loginApps?: readonly string[];
  /**
   * The smart contracts to which it signs calls for owned wallets (`namedContracts`); undefined if it does not report
   * them.
   */
  readonly contracts?: readonly string[] | undefined;

  /** Seals a secret that the caller knows. Its purpose must be one of `plainPurposes`. */
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  /**
   * Opens a secret whose purpose is one of `plainPurposes`, which excludes private keys. The caller wipes the result.
   */
  open(sealed: SealedKey, binding: SealBinding): Promise<Uint8Array>;
  /** Wraps the data key under the current master key. The encrypted secret does not change. */
  rewrap(sealed: SealedKey, binding: SealBinding): Promise<SealedKey>;

  /**
   * Generates the key of a new wallet. The purpose of the binding is its chain type. With an authority, the key can be
   * used only for tasks that the owner has signed.
   */
  createWalletKey(binding: SealBinding, authority?: WalletAuthority): Promise<NewWalletKey>;
  /**
   * Signs with a wallet's key.
   *
   * @throws SigningInputError
   * @throws UnauthorizedUseError for a key with an authority, unless `claim` shows that this task was authorized and
   * that a pinned policy allows it.
   */
  signWithWallet<Method extends SigningMethod>(
    sealed: SealedKey,
    binding: SealBinding,
    task: SigningTask<Method>,
    claim?: KeyUseClaim,
  ): Promise<SigningMethods[Method]['data']>;
  /**
   * Encrypts a wallet's private key in its usual text form, or its phrase, to a recipient. Returns undefined for the
   * phrase of a wallet without one.
   *
   * @param what the form of the key, and the recipient's public key, a 65-byte point.
   * @throws HpkeError for an invalid recipient.
   * @throws UnauthorizedUseError under the same conditions as `signWithWallet`.
   */
  exportWalletKey(
    sealed: SealedKey,
    binding: SealBinding,
    what: { readonly form: SubmittedKey['form']; readonly recipient: Uint8Array },
    claim?: KeyUseClaim,
  ): Promise<HpkeMessage | undefined>;
  /**
   * Seals a wallet's key under the authority that results from the change that its owner has signed.
   *
   * @throws UnauthorizedUseError
   */
  changeAuthority(sealed: SealedKey, binding: SealBinding, claim: KeyUseClaim): Promise<ChangedKey>;
  /**
   * Seals a wallet's key under an authority, if it was sealed without one.
   *
   * @throws KeyStoreError for a key that already has an authority.
   */
  sealUnderAuthority(sealed: SealedKey, binding: SealBinding, authority: WalletAuthority): Promise<SealedKey>;
  /**
   * Generates the secret of a policy and seals it under the policy's content. `name` is the value that wallets pin.
   * No other secret has this name, and the secret never leaves the key store.
   */
  sealPolicy(
    binding: SealBinding,
    content: Omit<PolicyContent, 'appId' | 'id'>,
  ): Promise<SealedPolicy & { readonly name: string }>;
  /**
   * Seals the secret of a policy under the content after a change.
   *
   * @throws UnauthorizedUseError unless its owner authorized the change.
   */
  changePolicy(sealed: SealedKey, binding: SealBinding, change: PolicyChange): Promise<SealedPolicy>;
  /**
   * Seals a random secret under the changes of a key quorum. The members have signed a request for the last change, and
   * the record contains the seal of the earlier changes. If the secret opens under these changes later, this key store
   * has verified each of them when it was made.
   *
   * @throws UnauthorizedUseError
   */
  sealQuorumChange(
    binding: SealBinding,
    record: QuorumRecord,
    vouching?: KnownQuorums['vouching'],
  ): Promise<SealedKey>;
  /** Generates the key pair to which one import is encrypted. The public key is a 65-byte point. */
  createImportKey(binding: SealBinding): Promise<NewKeyPair<Uint8Array>>;
  /**
   * Decrypts a submitted key and seals it for the wallet of `walletBinding`.
   *
   * @throws HpkeError when the submission cannot be decrypted.
   * @throws InvalidImportedKeyError when its content is not a key of the chain type.
   */
  importWalletKey(
    importKey: SealedKey,
    importBinding: SealBinding,
    submitted: SubmittedKey,
    walletBinding: SealBinding,
    authority?: WalletAuthority,
  ): Promise<NewWalletKey>;

  /** Generates a P-256 key that signs tokens. The public key is base64 SubjectPublicKeyInfo. */
  createTokenKey(binding: SealBinding): Promise<NewKeyPair<string>>;
  /** Signs the UTF-8 bytes of `text` with ES256 (RFC 7518 §3.4): r || s, 64 bytes. */
  signToken(sealed: SealedKey, binding: SealBinding, text: string): Promise<Uint8Array>;

  /**
   * Generates a P-256 key for a user. The private key is returned and not stored.
   *
   * @param recipient a 65-byte point to which the private key is encrypted; undefined returns it in plain text.
   * @param login the login that the key store verifies before it vouches for the key. If the token is invalid, the key
   * gets no voucher.
   * @throws HpkeError for an invalid recipient.
   */
  createUserKey(recipient: Uint8Array | undefined, login?: UserLogin): Promise<NewUserKey>;
  /**
   * Generates the key under which the key store vouches for the keys of an app's users. No other key has this `name`.
   */
  createVoucherKey(binding: SealBinding): Promise<{ readonly sealed: SealedKey; readonly name: string }>;

  createFingerprintKey(binding: SealBinding): Promise<SealedKey>;
  /** Returns the HMAC-SHA-256 of the UTF-8 bytes of `text` in hex. */
  fingerprint(sealed: SealedKey, binding: SealBinding, text: string): Promise<string>;

  /** Generates the Ed25519 key that signs the checkpoints of the audit log. The public key has 32 bytes. */
  createLogKey(binding: SealBinding): Promise<NewKeyPair<Uint8Array>>;
  /** Signs the UTF-8 bytes of `text` with Ed25519 (RFC 8032 §5.1.6), 64 bytes. */
  signCheckpoint(sealed: SealedKey, binding: SealBinding, text: string): Promise<Uint8Array>;
}
