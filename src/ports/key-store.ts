import type { PolicyChange, PolicyContent } from '../engine/authorization/policy-seals.ts';
import type { KnownQuorums, QuorumRecord } from '../engine/authorization/quorum-records.ts';
import type { StoredVoucherKey, Voucher } from '../engine/authorization/user-vouchers.ts';
import type { AuthorizedUse, WalletAuthority } from '../engine/authorization/wallet-authority.ts';
import type { HpkeParameters } from '../engine/crypto/hpke.ts';
import type { SigningMethod, SigningMethods, SigningTask } from '../engine/signing/sign-with-key.ts';
import type { WalletKeyFacts } from '../engine/signing/wallet-key.ts';

/** The binding of a sealed secret; opening it under any other binding fails. */
export interface SealBinding {
  /** The use of the secret: the chain type of a wallet's key, otherwise a separate name. */
  readonly purpose: string;
  /** The row that contains the secret. */
  readonly rowId: string;
  readonly appId: string;
  /**
   * The digest of a wallet's authority, or of the content of a policy; undefined for secrets that anyone who has them
   * may use.
   */
  readonly authority?: string;
}

/** A secret under envelope encryption, as stored in the database. */
export interface SealedKey {
  /** 12-byte nonce || ciphertext || 16-byte tag of the secret under its own data key. */
  sealedSecret: Uint8Array;
  /** 12-byte nonce || ciphertext || 16-byte tag of the data key under the master key. */
  wrappedDataKey: Uint8Array;
  /** Id of the master key that wrapped the data key. */
  masterKeyId: string;
}

/** The stored parts of a wallet's new key. */
export interface NewWalletKey extends WalletKeyFacts {
  readonly sealed: SealedKey;
}

/** A wallet's key under another authority. */
export interface ChangedKey {
  readonly sealed: SealedKey;
  readonly authority: WalletAuthority;
}

/** The secret of a policy, sealed under the policy's content. */
interface SealedPolicy {
  readonly sealed: SealedKey;
  /** JSON of the `PolicyContent`. */
  readonly content: string;
}

/** A new key pair: the sealed private key, and the public key in the form of the method that makes it. */
interface NewKeyPair<PublicKey> {
  readonly sealed: SealedKey;
  readonly publicKey: PublicKey;
}

/** A new key of a user; the public key is base64 SubjectPublicKeyInfo. */
export interface NewUserKey {
  readonly publicKey: string;
  /** Base64 PKCS #8, as it is or encrypted to a recipient. */
  readonly privateKey: string | HpkeMessage;
  /** Undefined if the key store does not vouch for the key. */
  readonly voucher?: Voucher | undefined;
}

/** A login for which a user's key is drawn. */
export interface UserLogin {
  readonly appId: string;
  /** A token of the app's own login. */
  readonly token: string;
  /** When the key ends: at most an hour ahead. Unix ms. */
  readonly expiresAtMs: number;
  readonly voucherKey: StoredVoucherKey;
}

/** A message to the holder of a P-256 key (RFC 9180, base mode). */
export interface HpkeMessage {
  /** 65 bytes. */
  readonly encapsulatedKey: Uint8Array;
  readonly ciphertext: Uint8Array;
}

/** A wallet's key as the caller of an import encrypted it. */
export interface SubmittedKey extends HpkeMessage {
  readonly parameters: HpkeParameters;
  readonly form: 'phrase' | 'private-key';
  /** The index of the wallet among those of the phrase. Default: 0. */
  readonly index?: number | undefined;
}

/**
 * Holds the master keys. Private keys are made, used and encrypted inside; what leaves is what the name of the method
 * says. So an implementation may run in a process of its own.
 *
 * Methods reject with a `KeyStoreError` when a secret cannot be sealed or opened. An implementation elsewhere rejects
 * with an error that `isUnavailable` recognizes while it cannot be reached.
 */
export interface KeyStore {
  /** The master key that seals. */
  readonly currentMasterKeyId: string;
  /**
   * Whether it computes in this process and waits for nothing else. Other key stores are called while no connection is
   * held.
   */
  readonly isLocal?: boolean;
  /** The apps whose logins it verifies: it vouches for keys of their users. */
  readonly loginApps?: readonly string[];
  /** The contracts that it signs calls of for owned wallets (`namedContracts`); undefined if it does not say. */
  readonly contracts?: readonly string[] | undefined;

  /** Seals a secret that the caller knows, for a purpose of `plainPurposes`. */
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  /** Opens a secret whose purpose is one of `plainPurposes`; never a private key. The caller wipes the result. */
  open(sealed: SealedKey, binding: SealBinding): Promise<Uint8Array>;
  /** Wraps the data key under the current master key; the secret stays as it is. */
  rewrap(sealed: SealedKey, binding: SealBinding): Promise<SealedKey>;

  /**
   * Draws the key of a new wallet. The purpose of the binding is its chain type. With an authority, it is used only for
   * what the owner has signed.
   */
  createWalletKey(binding: SealBinding, authority?: WalletAuthority): Promise<NewWalletKey>;
  /**
   * Signs with a wallet's key. Throws SigningInputError; UnauthorizedUseError for a key with an authority, unless its
   * `use` shows that this task was agreed to and that a pinned policy allows it.
   */
  signWithWallet<Method extends SigningMethod>(
    sealed: SealedKey,
    binding: SealBinding,
    task: SigningTask<Method>,
    use?: AuthorizedUse,
  ): Promise<SigningMethods[Method]['data']>;
  /**
   * Encrypts a wallet's private key in its usual text form, or its phrase, to a recipient; undefined for the phrase of
   * a wallet without one. Throws HpkeError for an invalid recipient; UnauthorizedUseError as `signWithWallet`.
   *
   * Shape: `recipient` 65-byte point.
   */
  exportWalletKey(
    sealed: SealedKey,
    binding: SealBinding,
    what: { readonly form: SubmittedKey['form']; readonly recipient: Uint8Array },
    use?: AuthorizedUse,
  ): Promise<HpkeMessage | undefined>;
  /**
   * Seals a wallet's key under the authority that it has after the change that its owner has signed. Throws
   * UnauthorizedUseError.
   */
  changeAuthority(sealed: SealedKey, binding: SealBinding, use: AuthorizedUse): Promise<ChangedKey>;
  /** Seals a wallet's key that is sealed without an authority under one. Throws for a key that has one. */
  sealUnderAuthority(sealed: SealedKey, binding: SealBinding, authority: WalletAuthority): Promise<SealedKey>;
  /**
   * Generates the secret of a policy and seals it under the policy's content. `name` is the value that wallets pin. No
   * other secret has it, and the secret never leaves the key store.
   */
  sealPolicy(
    binding: SealBinding,
    content: Omit<PolicyContent, 'appId' | 'id'>,
  ): Promise<SealedPolicy & { readonly name: string }>;
  /**
   * Seals the secret of a policy under the content after a change. Throws UnauthorizedUseError unless its owner
   * agreed.
   */
  changePolicy(sealed: SealedKey, binding: SealBinding, change: PolicyChange): Promise<SealedPolicy>;
  /**
   * Seals a random secret under the changes of a key quorum, the last of which its members have signed a request for
   * now; the record has the seal of those before it. What opens under them shows that this key store has seen each
   * when it was made. Throws UnauthorizedUseError.
   */
  sealQuorumChange(
    binding: SealBinding,
    record: QuorumRecord,
    vouching?: KnownQuorums['vouching'],
  ): Promise<SealedKey>;
  /** Draws the key pair that one import is encrypted to. Public key: 65-byte point. */
  createImportKey(binding: SealBinding): Promise<NewKeyPair<Uint8Array>>;
  /**
   * Decrypts an import and seals its key for the wallet of `walletBinding`. Throws HpkeError when the submission cannot
   * be decrypted, InvalidImportedKeyError when its content is not a key of the chain type.
   */
  importWalletKey(
    importKey: SealedKey,
    importBinding: SealBinding,
    submitted: SubmittedKey,
    walletBinding: SealBinding,
    authority?: WalletAuthority,
  ): Promise<NewWalletKey>;

  /** Draws a P-256 key that signs tokens. Public key: base64 SubjectPublicKeyInfo. */
  createTokenKey(binding: SealBinding): Promise<NewKeyPair<string>>;
  /** ES256 (RFC 7518 §3.4): r || s, 64 bytes, over the UTF-8 bytes of `text`. */
  signToken(sealed: SealedKey, binding: SealBinding, text: string): Promise<Uint8Array>;

  /**
   * Draws a P-256 key for a user, whose private key is not stored. Throws HpkeError for an invalid recipient.
   *
   * Shape: `recipient` 65-byte point; without one, the private key is returned as it is.
   *
   * @param login what the key store verifies to vouch for the key. It does not if the token is not valid.
   */
  createUserKey(recipient: Uint8Array | undefined, login?: UserLogin): Promise<NewUserKey>;
  /** Draws the key under which the key store vouches for keys of an app's users. No other one has the `name`. */
  createVoucherKey(binding: SealBinding): Promise<{ readonly sealed: SealedKey; readonly name: string }>;

  /** Draws a key for fingerprints. */
  createFingerprintKey(binding: SealBinding): Promise<SealedKey>;
  /** HMAC-SHA-256 of the UTF-8 bytes of `text`, hex. */
  fingerprint(sealed: SealedKey, binding: SealBinding, text: string): Promise<string>;

  /** Draws the Ed25519 key that signs the checkpoints of the audit log. Public key: 32 bytes. */
  createLogKey(binding: SealBinding): Promise<NewKeyPair<Uint8Array>>;
  /** Ed25519 (RFC 8032 §5.1.6), 64 bytes, over the UTF-8 bytes of `text`. */
  signCheckpoint(sealed: SealedKey, binding: SealBinding, text: string): Promise<Uint8Array>;
}
