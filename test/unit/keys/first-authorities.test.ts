import { recoverMessageAddress } from 'viem/utils';
import { beforeEach, expect, test } from 'vitest';
import { type QuorumRecord, quorumReference } from '../../../src/engine/authorization/quorum-records.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, type Owner, signedBy } from '../../support/signer/owner.ts';

// A wallet's key that was sealed without an authority gets one when the wallet has its first owner.

const nowMs = 1_900_000_000_000;
const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
const binding = { purpose: 'ethereum', rowId: 'wallet', appId: 'acme' };
const path = '/v1/wallets/wallet/rpc';

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(nowMs);
  return server.close;
});

/** The parts and the address of a key without an authority. */
async function freeKey() {
  const { parts, json } = await server.call('createWalletKey', [], { binding });
  return { parts, address: (json as { facts: { address: string } }).facts.address };
}

const authorityOf = (owner: QuorumRecord) => ({
  owner: quorumReference(owner.base),
  signers: [],
  isAutomated: false,
});

async function sealed(wallet: { parts: readonly Uint8Array[]; address: string }, owner: QuorumRecord) {
  const authority = authorityOf(owner);
  const json = { key: 'test', binding, authority };
  const { parts } = await server.call('sealUnderAuthority', wallet.parts, json);
  return { binding, parts, authority, quorums: [owner], address: wallet.address } satisfies SealedWallet;
}

const by = (wallet: SealedWallet, owner: Owner) => useOf(wallet, signedBy([owner], { path, body: hello }));

test('from its first owner on, a key is used only for what the owner has signed', async () => {
  const [owner, thief] = [newOwner(), newOwner()];
  const free = await freeKey();
  const wallet = await sealed(free, ofKey(owner));
  const { signature } = (await server.signs(wallet, hello, by(wallet, owner))) as {
    signature: `0x${string}`;
  };
  expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(free.address);
  const theirs = { ...wallet, authority: authorityOf(ofKey(thief)), quorums: [ofKey(thief)] };
  const unauthorized = {
    'no use': undefined,
    'no evidence': useOf(wallet),
    'a signature by another key': by(wallet, thief),
    'an authority of its own': by(theirs, thief),
    'no owner': useOf({ ...wallet, authority: { owner: null, signers: [], isAutomated: false } }),
    automations: useOf({ ...wallet, authority: { ...wallet.authority, isAutomated: true } }),
  };
  for (const [what, use] of Object.entries(unauthorized)) {
    await expect(server.signs(wallet, hello, use), what).rejects.toThrow();
  }
});

test('a key that has an authority gets no second one without its owner', async () => {
  const [owner, thief] = [newOwner(), newOwner()];
  const wallet = await sealed(await freeKey(), ofKey(owner));
  const authority = authorityOf(ofKey(thief));
  const honest = { key: 'test', binding, authority };
  const forged = [
    honest,
    { ...honest, use: useOf(wallet) },
    { ...honest, binding: { ...binding, authority: 'x' } },
    { ...honest, authority: wallet.authority },
    { ...honest, authority: undefined },
    { ...honest, authority: {} },
    { ...honest, binding: { ...binding, rowId: 'another' } },
  ];
  for (const json of forged) {
    await expect(server.call('sealUnderAuthority', wallet.parts, json)).rejects.toThrow();
  }
  await expect(server.signs(wallet, hello, by(wallet, owner))).resolves.toHaveProperty('signature');
});

test('no other secret is sealed under an authority', async () => {
  const ofPolicy = { ...binding, purpose: 'policy' };
  const content = { chainType: 'ethereum', owner: null, rules: [] };
  const policy = await server.call('sealPolicy', [], { binding: ofPolicy, content });
  const authority = authorityOf(ofKey(newOwner()));
  for (const asked of [ofPolicy, binding]) {
    const json = { key: 'test', binding: asked, authority };
    await expect(server.call('sealUnderAuthority', policy.parts, json)).rejects.toThrow();
  }
});

test('a copy of the key from before its first owner still opens without one', async () => {
  const free = await freeKey();
  await sealed(free, ofKey(newOwner()));
  const copy = { binding, parts: free.parts, address: free.address } as unknown as SealedWallet;
  await expect(server.signs(copy, hello, undefined)).resolves.toHaveProperty('signature');
});
