import type { PolicyChange, PolicyPin, WalletPolicies } from '../engine/authorization/policy-seals.ts';
import type { KnownQuorums, QuorumRecord } from '../engine/authorization/quorum-records.ts';
import type { KeyUseClaim, WalletAuthority } from '../engine/authorization/wallet-authority.ts';
import type { SigningTask } from '../engine/signing/sign-with-key.ts';
import type {
  KeyStore,
  NewUserKey,
  NewWalletKey,
  SealBinding,
  SealedKey,
  SubmittedKey,
  UserLogin,
} from '../ports/key-store.ts';
import type { Message } from './frames.ts';

/** This file maps the operations of a key store to messages and back, on both sides of the connection. */

/** The position of a name is its number in the protocol, so append new operations. */
export const operationNames = [
  'seal',
  'open',
  'rewrap',
  'createWalletKey',
  'signWithWallet',
  'exportWalletKey',
  'createImportKey',
  'importWalletKey',
  'createTokenKey',
  'signToken',
  'createUserKey',
  'createFingerprintKey',
  'fingerprint',
  'createLogKey',
  'signCheckpoint',
  'changeAuthority',
  'sealPolicy',
  'changePolicy',
  'sealQuorumChange',
  'createVoucherKey',
  'sealUnderAuthority',
] as const satisfies readonly (keyof KeyStore)[];
type OperationName = (typeof operationNames)[number];

/** Sends a call and resolves with its result. */
type Call = (operation: OperationName, parts: readonly Uint8Array[], json: unknown) => Promise<Message>;

/** Returns a key store that sends every operation to another process. */
export function keyStoreCalling(call: Call): Omit<KeyStore, 'currentMasterKeyId'> {
  return {
    seal: async (secret, binding) => sealedOf(await call('seal', [secret], { binding })),
    async open(sealed, binding) {
      const { parts } = await call('open', partsOf(sealed), { key: sealed.masterKeyId, binding });
      return new Uint8Array(part(parts, 0));
    },
    rewrap: async (sealed, binding) =>
      sealedOf(await call('rewrap', partsOf(sealed), { key: sealed.masterKeyId, binding })),
    createWalletKey: async (binding, authority) =>
      walletKeyOf(await call('createWalletKey', [], { binding, authority })),
    async signWithWallet(sealed, binding, { method, params }, claim) {
      const json = { key: sealed.masterKeyId, binding, method, params, use: claim };
      return (await call('signWithWallet', partsOf(sealed), json)).json as never;
    },
    async exportWalletKey(sealed, binding, { form, recipient }, claim) {
      const json = { key: sealed.masterKeyId, binding, form, use: claim };
      const { parts } = await call('exportWalletKey', [...partsOf(sealed), recipient], json);
      return parts.length === 0 ? undefined : messageOf(parts, 0);
    },
    async changeAuthority(sealed, binding, claim) {
      const json = { key: sealed.masterKeyId, binding, use: claim };
      const result = await call('changeAuthority', partsOf(sealed), json);
      const { authority } = result.json as { authority: WalletAuthority };
      return { sealed: sealedOf(result), authority };
    },
    async sealUnderAuthority(sealed, binding, authority) {
      const json = { key: sealed.masterKeyId, binding, authority };
      return sealedOf(await call('sealUnderAuthority', partsOf(sealed), json));
    },
    async sealPolicy(binding, content) {
      const result = await call('sealPolicy', [], { binding, content });
      return { sealed: sealedOf(result), ...(result.json as { name: string; content: string }) };
    },
    async changePolicy(sealed, binding, change) {
      const json = { key: sealed.masterKeyId, binding, change };
      const result = await call('changePolicy', partsOf(sealed), json);
      return { sealed: sealedOf(result), content: (result.json as { content: string }).content };
    },
    sealQuorumChange: async (binding, record, vouching) =>
      sealedOf(await call('sealQuorumChange', [], { binding, record, vouching })),
    async createImportKey(binding) {
      const result = await call('createImportKey', [], { binding });
      return { sealed: sealedOf(result), publicKey: new Uint8Array(part(result.parts, 2)) };
    },
    async importWalletKey(importKey, binding, submitted, walletBinding, authority) {
      const { encapsulatedKey, ciphertext, parameters, form, index } = submitted;
      const { aead, info, aad } = parameters;
      const json = { key: importKey.masterKeyId, binding, walletBinding, form, index, authority };
      const texts = { aead, info: base64(info), aad: base64(aad) };
      const parts = [...partsOf(importKey), encapsulatedKey, ciphertext];
      return walletKeyOf(await call('importWalletKey', parts, { ...json, ...texts }));
    },
    async createTokenKey(binding) {
      const result = await call('createTokenKey', [], { binding });
      return { sealed: sealedOf(result), publicKey: (result.json as { publicKey: string }).publicKey };
    },
    async signToken(sealed, binding, text) {
      const json = { key: sealed.masterKeyId, binding, text };
      return new Uint8Array(part((await call('signToken', partsOf(sealed), json)).parts, 0));
    },
    async createUserKey(recipient, login) {
      const asked = recipient === undefined ? [] : [recipient];
      const { json, parts } = await call('createUserKey', asked, { login });
      const { privateKey, ...key } = json as Omit<NewUserKey, 'privateKey'> & { privateKey?: string };
      return { ...key, privateKey: privateKey ?? messageOf(parts, 0) };
    },
    async createVoucherKey(binding) {
      const result = await call('createVoucherKey', [], { binding });
      return { sealed: sealedOf(result), name: (result.json as { name: string }).name };
    },
    createFingerprintKey: async (binding) => sealedOf(await call('createFingerprintKey', [], { binding })),
    async fingerprint(sealed, binding, text) {
      const json = { key: sealed.masterKeyId, binding, text };
      return (await call('fingerprint', partsOf(sealed), json)).json as string;
    },
    async createLogKey(binding) {
      const result = await call('createLogKey', [], { binding });
      return { sealed: sealedOf(result), publicKey: new Uint8Array(part(result.parts, 2)) };
    },
    async signCheckpoint(sealed, binding, text) {
      const json = { key: sealed.masterKeyId, binding, text };
      return new Uint8Array(part((await call('signCheckpoint', partsOf(sealed), json)).parts, 0));
    },
  };
}

type ServeCall = (keyStore: KeyStore, message: Message) => Promise<Message>;

/**
 * The signer's side: for each operation, a function that decodes a call, makes it, and encodes the result. The caller
 * may be compromised, so the form of what it sends is checked, except where later verification checks it.
 */
export const callHandlers: Readonly<Record<OperationName, ServeCall>> = {
  seal: async (keyStore, { parts, json }) =>
    sealedMessage(await keyStore.seal(part(parts, 0), bindingOf(json))),
  async open(keyStore, message) {
    const secret = await keyStore.open(sealedIn(message), bindingOf(message.json));
    return { parts: [secret], json: undefined };
  },
  rewrap: async (keyStore, message) =>
    sealedMessage(await keyStore.rewrap(sealedIn(message), bindingOf(message.json))),
  createWalletKey: async (keyStore, { json }) =>
    walletKeyMessage(await keyStore.createWalletKey(bindingOf(json), authorityOf(json))),
  async signWithWallet(keyStore, message) {
    const { method, params } = message.json as SigningTask;
    const task = { method: readText(method), params } as SigningTask;
    const binding = bindingOf(message.json);
    const data = await keyStore.signWithWallet(sealedIn(message), binding, task, claimOf(message.json));
    return { parts: [], json: data };
  },
  async exportWalletKey(keyStore, message) {
    const what = { form: formOf(message.json), recipient: part(message.parts, 2) };
    const binding = bindingOf(message.json);
    const exported = await keyStore.exportWalletKey(sealedIn(message), binding, what, claimOf(message.json));
    const parts = exported === undefined ? [] : [exported.encapsulatedKey, exported.ciphertext];
    return { parts, json: undefined };
  },
  async changeAuthority(keyStore, message) {
    const claim = claimOf(message.json);
    if (claim === undefined) throw new MessageError('expected the use of a wallet');
    const { sealed, authority } = await keyStore.changeAuthority(
      sealedIn(message),
      bindingOf(message.json),
      claim,
    );
    return sealedMessage(sealed, { authority });
  },
  async sealUnderAuthority(keyStore, message) {
    const authority = authorityOf(message.json);
    if (authority === undefined) throw new MessageError('expected the authority of a wallet');
    return sealedMessage(
      await keyStore.sealUnderAuthority(sealedIn(message), bindingOf(message.json), authority),
    );
  },
  async sealPolicy(keyStore, { json }) {
    const { content } = json as { content: Parameters<KeyStore['sealPolicy']>[1] };
    const { sealed, ...sealedPolicy } = await keyStore.sealPolicy(bindingOf(json), content);
    return sealedMessage(sealed, sealedPolicy);
  },
  async changePolicy(keyStore, message) {
    const { change } = message.json as { change: PolicyChange };
    const binding = bindingOf(message.json);
    const { sealed, content } = await keyStore.changePolicy(sealedIn(message), binding, change);
    return sealedMessage(sealed, { content });
  },
  async sealQuorumChange(keyStore, { json }) {
    const { record, vouching } = json as { record: QuorumRecord; vouching?: KnownQuorums['vouching'] };
    return sealedMessage(await keyStore.sealQuorumChange(bindingOf(json), record, vouching));
  },
  async createImportKey(keyStore, { json }) {
    const { sealed, publicKey } = await keyStore.createImportKey(bindingOf(json));
    return sealedMessage(sealed, {}, [publicKey]);
  },
  async importWalletKey(keyStore, message) {
    const { json } = message;
    const walletBinding = bindingOf({ binding: (json as { walletBinding: unknown }).walletBinding });
    const submitted = submittedIn(message);
    const key = sealedIn(message);
    return walletKeyMessage(
      await keyStore.importWalletKey(key, bindingOf(json), submitted, walletBinding, authorityOf(json)),
    );
  },
  async createTokenKey(keyStore, { json }) {
    const { sealed, publicKey } = await keyStore.createTokenKey(bindingOf(json));
    return sealedMessage(sealed, { publicKey });
  },
  async signToken(keyStore, message) {
    const { json } = message;
    const signed = readText((json as { text: unknown }).text);
    return { parts: [await keyStore.signToken(sealedIn(message), bindingOf(json), signed)], json: undefined };
  },
  async createUserKey(keyStore, { parts, json }) {
    const { privateKey, ...key } = await keyStore.createUserKey(parts[0], loginOf(json));
    if (typeof privateKey === 'string') return { parts: [], json: { ...key, privateKey } };
    return { parts: [privateKey.encapsulatedKey, privateKey.ciphertext], json: key };
  },
  async createVoucherKey(keyStore, { json }) {
    const { sealed, name } = await keyStore.createVoucherKey(bindingOf(json));
    return sealedMessage(sealed, { name });
  },
  createFingerprintKey: async (keyStore, { json }) =>
    sealedMessage(await keyStore.createFingerprintKey(bindingOf(json))),
  async fingerprint(keyStore, message) {
    const { json } = message;
    const value = readText((json as { text: unknown }).text);
    return { parts: [], json: await keyStore.fingerprint(sealedIn(message), bindingOf(json), value) };
  },
  async createLogKey(keyStore, { json }) {
    const { sealed, publicKey } = await keyStore.createLogKey(bindingOf(json));
    return sealedMessage(sealed, {}, [publicKey]);
  },
  async signCheckpoint(keyStore, message) {
    const { json } = message;
    const signed = readText((json as { text: unknown }).text);
    return {
      parts: [await keyStore.signCheckpoint(sealedIn(message), bindingOf(json), signed)],
      json: undefined,
    };
  },
};

/** Thrown when a message does not have the form of its operation. */
export class MessageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MessageError';
  }
}

function partsOf({ sealedSecret, wrappedDataKey }: SealedKey): [Uint8Array, Uint8Array] {
  return [sealedSecret, wrappedDataKey];
}

function sealedMessage(sealed: SealedKey, json: object = {}, more: readonly Uint8Array[] = []): Message {
  return { parts: [...partsOf(sealed), ...more], json: { key: sealed.masterKeyId, ...json } };
}

function sealedIn({ parts, json }: Message): SealedKey {
  const masterKeyId = readText((json as { key?: unknown } | undefined)?.key);
  return { sealedSecret: part(parts, 0), wrappedDataKey: part(parts, 1), masterKeyId };
}

const sealedOf = sealedIn;

function walletKeyMessage({ sealed, ...facts }: NewWalletKey): Message {
  return sealedMessage(sealed, { facts });
}

function walletKeyOf(result: Message): NewWalletKey {
  const { facts } = result.json as { facts: Omit<NewWalletKey, 'sealed'> };
  return { ...facts, sealed: sealedOf(result) };
}

function messageOf(parts: readonly Uint8Array[], at: number) {
  return {
    encapsulatedKey: new Uint8Array(part(parts, at)),
    ciphertext: new Uint8Array(part(parts, at + 1)),
  };
}

function submittedIn({ parts, json }: Message): SubmittedKey {
  const { index, aead, info, aad } = json as Record<string, unknown>;
  return {
    encapsulatedKey: part(parts, 2),
    ciphertext: part(parts, 3),
    form: formOf(json),
    ...(index === undefined ? {} : { index: Number(index) }),
    parameters: {
      ...(aead === 'AES_GCM256' || aead === 'CHACHA20_POLY1305' ? { aead } : {}),
      ...(info === undefined ? {} : { info: Buffer.from(readText(info), 'base64') }),
      ...(aad === undefined ? {} : { aad: Buffer.from(readText(aad), 'base64') }),
    },
  };
}

function bindingOf(json: unknown): SealBinding {
  const { purpose, rowId, appId, authority } = ((json as { binding?: unknown } | undefined)?.binding ??
    {}) as SealBinding;
  const binding = { purpose: readText(purpose), rowId: readText(rowId), appId: readText(appId) };
  return authority === undefined ? binding : { ...binding, authority: readText(authority) };
}

function authorityOf(json: unknown): WalletAuthority | undefined {
  const { authority } = json as { authority?: unknown };
  return authority === undefined ? undefined : readAuthority(authority);
}

function readAuthority(value: unknown): WalletAuthority {
  const { owner, signers, isAutomated, policies } = (value ?? {}) as Partial<WalletAuthority>;
  if (!Array.isArray(signers)) throw new MessageError('expected the authority of a wallet');
  return {
    owner: owner === null ? null : readText(owner),
    signers: signers.map(readText),
    isAutomated: isAutomated === true,
    ...(policies === undefined ? {} : { policies: readPolicies(policies) }),
  };
}

function readPolicies(value: unknown): WalletPolicies {
  const { wallet, signers } = (value ?? {}) as Partial<WalletPolicies>;
  if (!Array.isArray(signers)) throw new MessageError('expected the policies of a wallet');
  return { wallet: readPin(wallet), signers: signers.map((pin) => (pin === 'wallet' ? pin : readPin(pin))) };
}

function readPin(value: unknown): PolicyPin | null {
  if (value === null) return null;
  const { id, seal } = (value ?? {}) as Partial<PolicyPin>;
  return { id: readText(id), seal: readText(seal) };
}

/**
 * Returns the claim in a call; undefined if the call has none.
 *
 * NOTE: only the form of the authority is checked here. Malformed records and evidence fail when they are verified.
 */
function claimOf(json: unknown): KeyUseClaim | undefined {
  const { use } = json as { use?: KeyUseClaim };
  return use === undefined ? undefined : { ...use, authority: readAuthority(use.authority) };
}

function loginOf(json: unknown): UserLogin | undefined {
  const { login } = (json ?? {}) as { login?: UserLogin };
  if (login === undefined) return undefined;
  const { appId, token, expiresAtMs, voucherKey } = login;
  return { appId: readText(appId), token: readText(token), expiresAtMs: Number(expiresAtMs), voucherKey };
}

function formOf(json: unknown): SubmittedKey['form'] {
  const { form } = json as { form?: unknown };
  if (form === 'phrase' || form === 'private-key') return form;
  throw new MessageError('expected the form of a key');
}

function readText(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new MessageError('expected a text');
}

function part(parts: readonly Uint8Array[], index: number): Uint8Array {
  const found = parts[index];
  if (found !== undefined) return found;
  throw new MessageError(`expected a byte string at ${index}`);
}

function base64(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString('base64');
}
