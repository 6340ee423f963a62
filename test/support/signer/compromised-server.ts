import { randomBytes } from 'node:crypto';
import { duplexPair } from 'node:stream';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import type { WalletPolicies } from '../../../src/engine/authorization/policy-seals.ts';
import {
  baseOfKey,
  type QuorumBase,
  type QuorumChange,
  type QuorumRecord,
  quorumReference,
} from '../../../src/engine/authorization/quorum-records.ts';
import type { ConfiguredCeilings } from '../../../src/engine/authorization/requested/requested-fees.ts';
import type { WalletAuthority } from '../../../src/engine/authorization/wallet-authority.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import { type callHandlers, operationNames } from '../../../src/keys/protocol.ts';
import { serveConnection } from '../../../src/keys/serve-connection.ts';
import { connectTo, type SignerConnection } from '../../../src/keys/signer-connection.ts';
import type { UserLogin } from '../../../src/keys/voucher-operations.ts';
import type { Owner } from './owner.ts';

// A server under an attacker's control. It speaks the protocol of the signer, has every row of the database, and sees
// every request that owners sign. It has no owner's key.

type Parts = readonly Uint8Array[];

export interface SealedWallet {
  readonly binding: { purpose: string; rowId: string; appId: string };
  readonly parts: Parts;
  readonly authority: WalletAuthority;
  readonly quorums: readonly QuorumRecord[];
  readonly address: string;
}

export interface NewWallet {
  readonly owner: QuorumRecord;
  readonly signers?: readonly QuorumRecord[];
  readonly rowId?: string;
  readonly chainType?: string;
  readonly policies?: WalletPolicies;
}

export type CompromisedServer = ReturnType<typeof serverOver>;

/** The addresses that the operator has configured in the signer. */
export const [router, wrapped, distributor] = [0xa1, 0xa2, 0xa3].map(
  (byte) => `0x${byte.toString(16).repeat(20)}`,
) as [string, string, string];
const upperCase = (address: string) => `0x${address.slice(2).toUpperCase()}`;
const contracts = {
  swapRouters: new Map([
    ['eip155:8453', { router: upperCase(router), wrapped: upperCase(wrapped) }],
    ['eip155:1', { router: upperCase(router) }],
  ]),
  rewardDistributors: new Map([['eip155:8453', upperCase(distributor)]]),
};

/** Connects to a new signer. Its clock is frozen, unless a clock is given. */
export async function compromisedServer(
  time: number | (() => number),
  logins: ReadonlyMap<string, UserLogin> = new Map(),
  feeCeilings: ConfiguredCeilings = new Map(),
  signaturesPerRequest?: number,
  /** The master key waits for this before it opens anything. */
  untilOpened?: () => Promise<void>,
) {
  const masterKey = localMasterKey('test', randomBytes(32), systemEntropy);
  const keyStore = createKeyStore({
    masterKeys: [
      {
        ...masterKey,
        async unwrap(...args) {
          await untilOpened?.();
          return masterKey.unwrap(...args);
        },
      },
    ],
    entropy: systemEntropy,
    clock: { now: typeof time === 'number' ? () => time : time },
    logins,
    building: { feeCeilings, ...contracts },
    signaturesPerRequest,
  });
  const [ours, its] = duplexPair();
  serveConnection(its, { keyStore, masterKeyIds: ['test'], report: () => undefined });
  return serverOver(await connectTo(ours));
}

/** The actions of such a server over its connection to a signer. */
export function serverOver(signer: SignerConnection) {
  /** Sends a call unchanged. */
  async function call(name: keyof typeof callHandlers, parts: Parts, json: object) {
    return signer.call(operationNames.indexOf(name), parts, json);
  }

  return {
    call,
    close: () => signer.close(),
    hasEnded: () => signer.hasEnded(),
    async walletOf(made: NewWallet): Promise<SealedWallet> {
      const { owner, signers = [], rowId = 'wallet', chainType = 'ethereum', policies } = made;
      const binding = { purpose: chainType, rowId, appId: 'acme' };
      const authority = {
        owner: quorumReference(owner.base),
        signers: signers.map(({ base }) => quorumReference(base)),
        isAutomated: false,
        ...(policies === undefined ? {} : { policies }),
      };
      const { parts, json } = await call('createWalletKey', [], { binding, authority });
      const { address } = (json as { facts: { address: string } }).facts;
      return { binding, parts, authority, quorums: [owner, ...signers], address };
    },
    /** Reports a changed key quorum to the signer, like an honest server. */
    async changedQuorum(
      record: QuorumRecord,
      change: QuorumChange,
      vouching?: object,
    ): Promise<QuorumRecord> {
      const { appId, id } = record.base;
      const binding = { purpose: 'key-quorum-changes', rowId: id, appId };
      const after = { ...record, changes: [...record.changes, change] };
      const { parts, json } = await call('sealQuorumChange', [], { binding, record: after, vouching });
      const [sealedSecret, wrappedDataKey] = parts.map((part) => Buffer.from(part).toString('base64'));
      const { key: masterKeyId } = json as { key: string };
      return {
        ...after,
        seal: { sealedSecret: sealedSecret!, wrappedDataKey: wrappedDataKey!, masterKeyId },
      };
    },
    /** Requests a signature. `forged` replaces parts of what an honest server sends. */
    async signs(wallet: SealedWallet, task: object, use: object | undefined, forged: object = {}) {
      const { binding, parts } = wallet;
      const key = signer.hello.currentMasterKeyId;
      return (await call('signWithWallet', parts, { key, binding, ...task, use, ...forged })).json;
    },
  };
}

/** The key quorum of one public key, in the form that the server creates. */
export function ofKey({ publicKey }: Owner, id = 'quorum'): QuorumRecord {
  return { base: baseOfKey('acme', id, publicKey), changes: [] };
}

export function quorum(id: string, members: Partial<QuorumBase>): QuorumRecord {
  const empty = { threshold: null, publicKeys: [], userIds: [], quorums: [] };
  return { base: { appId: 'acme', id, ...empty, ...members }, changes: [] };
}

/** The data that an honest server presents. */
export function useOf({ authority, quorums, address }: SealedWallet, evidence?: unknown) {
  return {
    ...{ authority, quorums, address, userKeys: {} },
    ...(evidence === undefined ? {} : { evidence }),
  };
}
