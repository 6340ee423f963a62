import { randomBytes } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { parseTransaction, recoverMessageAddress } from 'viem/utils';
import { beforeEach, expect, test } from 'vitest';
import { type QuorumRecord, quorumReference } from '../../../src/engine/authorization/quorum-records.ts';
import type { WalletAuthority } from '../../../src/engine/authorization/wallet-authority.ts';
import { hpkeRecipientFromSeed, openHpke } from '../../../src/engine/crypto/hpke.ts';
import { encodeP256PublicKey } from '../../../src/engine/crypto/p256.ts';
import { smallSwap } from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  quorum,
  router,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, type Owner, signedBy, signPayload } from '../../support/signer/owner.ts';

const nowMs = 1_900_000_000_000;

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(nowMs);
  return server.close;
});

const call: CompromisedServer['call'] = (...asked) => server.call(...asked);
const signs: CompromisedServer['signs'] = (...asked) => server.signs(...asked);
const walletOf = (owner: QuorumRecord, signers: readonly QuorumRecord[] = [], rowId = 'wallet') =>
  server.walletOf({ owner, signers, rowId });

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
const robbery = { method: 'personal_sign', params: { message: 'all my money', encoding: 'utf-8' } };
const rpc = (wallet: SealedWallet) => `/v1/wallets/${wallet.binding.rowId}/rpc`;

test('what the owner has signed is signed, under each name of the server, until it expires', async () => {
  const owner = newOwner();
  const wallet = await walletOf(ofKey(owner));
  for (const path of [rpc(wallet), `/api${rpc(wallet)}`, `/v1/%77allets/%77allet/%72p%63/`]) {
    const evidence = signedBy([owner], { path, body: hello, expiryMs: nowMs + 1 });
    const data = await signs(wallet, hello, useOf(wallet, evidence));
    const { signature } = data as { signature: `0x${string}` };
    expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(wallet.address);
  }
});

test('no request that its owner has not signed uses a wallet', async () => {
  const [owner, attacker] = [newOwner(), newOwner()];
  const wallet = await walletOf(ofKey(owner));
  const other = await walletOf(ofKey(owner), [], 'another');
  const theirs = await walletOf(ofKey(attacker), [], 'wallet');
  const path = rpc(wallet);
  const honest = signedBy([owner], { path, body: hello });
  const [{ payload, signatures }] = honest.requests as [(typeof honest.requests)[0]];
  const forAttacker = { owner: theirs.authority.owner, signers: [], isAutomated: false };
  const withSigner = { ...wallet.authority, signers: [theirs.authority.owner!] };
  const unauthorized = {
    'no evidence': useOf(wallet),
    'no signatures': useOf(wallet, { requests: [{ payload, signatures: [] }] }),
    'no requests': useOf(wallet, { requests: [] }),
    'garbage for signatures': useOf(wallet, { requests: [{ payload, signatures: ['', '0', 'AAAA'] }] }),
    'a signature by another key': useOf(wallet, signedBy([attacker], { path, body: hello })),
    'a body that was altered after signing': useOf(wallet, {
      requests: [{ payload: payload.replace('hello', 'all my money'), signatures }],
    }),
    'an expired request': useOf(wallet, signedBy([owner], { path, body: hello, expiryMs: nowMs - 60_001 })),
    'an expiry that is no time': useOf(
      wallet,
      signedBy([owner], { path, body: hello, expiryMs: Number.NaN }),
    ),
    'a request about another wallet': useOf(wallet, signedBy([owner], { path: rpc(other), body: hello })),
    'a request of another app': useOf(wallet, signedBy([owner], { path, body: hello, appId: 'globex' })),
    'a slash that is part of an id': useOf(
      wallet,
      signedBy([owner], { path: '/v1/wallets/wallet%2Frpc', body: hello }),
    ),
    'what is encoded twice': useOf(
      wallet,
      signedBy([owner], { path: '/v1/wallets/wallet/%2572pc', body: hello }),
    ),
    'a request of another operation': useOf(wallet, signedBy([owner], { path: `${path}x`, body: hello })),
    'another method of HTTP': useOf(wallet, signedBy([owner], { path, body: hello, method: 'PATCH' })),
    'two requests of which one is about this': useOf(wallet, {
      requests: [...honest.requests, ...signedBy([owner], { path, body: robbery }).requests],
    }),
    'an automation that was not agreed to': useOf({
      ...wallet,
      authority: { ...wallet.authority, isAutomated: true },
    }),
    'a key quorum of the same name': useOf(
      { ...wallet, quorums: [quorum('quorum', { publicKeys: [attacker.publicKey] })] },
      signedBy([attacker], { path, body: hello }),
    ),
    'the authority of another wallet': useOf(theirs, signedBy([attacker], { path, body: hello })),
    'an authority of its own': useOf(
      { ...wallet, authority: forAttacker, quorums: theirs.quorums },
      signedBy([attacker], { path, body: hello }),
    ),
    'one more signer': useOf(
      { ...wallet, authority: withSigner, quorums: [...wallet.quorums, ...theirs.quorums] },
      signedBy([attacker], { path, body: hello }),
    ),
    'no owner': useOf({ ...wallet, authority: { owner: null, signers: [], isAutomated: false } }),
    'the use of a wallet without an authority': undefined,
  };
  for (const [what, use] of Object.entries(unauthorized)) {
    await expect(signs(wallet, hello, use), what).rejects.toThrow();
  }
  await expect(signs(wallet, hello, useOf(wallet, honest))).resolves.toHaveProperty('signature');
  // Nor by what is in the binding, or with the key in place of another secret.
  for (const forged of [{ authority: 'x' }, { authority: undefined }, { rowId: 'another' }]) {
    const binding = { ...wallet.binding, ...forged };
    await expect(signs(wallet, robbery, useOf(wallet), { binding })).rejects.toThrow();
  }
  await expect(call('open', wallet.parts, { key: 'test', binding: wallet.binding })).rejects.toThrow();
  await expect(call('rewrap', wallet.parts, { key: 'test', binding: wallet.binding })).rejects.toThrow();
});

test('a task that differs from the body is refused', async () => {
  const owner = newOwner();
  const wallet = await walletOf(ofKey(owner));
  const path = rpc(wallet);
  const evidence = signedBy([owner], { path, body: { ...hello, chain_type: 'ethereum' } });
  const tasks = [
    robbery,
    { method: 'personal_sign', params: { ...hello.params, encoding: 'hex' } },
    { method: 'secp256k1_sign', params: { hash: `0x${'11'.repeat(32)}` } },
    { method: 'raw_sign', params: { hash: `0x${'11'.repeat(32)}` } },
    { method: 'eth_sign7702Authorization', params: { contract: wallet.address, chain_id: 1, nonce: 0 } },
    { method: 'eth_signTransaction', params: { transaction: { to: wallet.address, chain_id: 1 } } },
  ];
  for (const task of tasks) {
    await expect(signs(wallet, task, useOf(wallet, evidence)), task.method).rejects.toThrow();
  }
  await expect(signs(wallet, hello, useOf(wallet, evidence))).resolves.toHaveProperty('signature');
  const raw = { params: { hash: `0x${'11'.repeat(32)}` } };
  const ofRaw = signedBy([owner], { path: path.replace('rpc', 'raw_sign'), body: raw });
  await expect(signs(wallet, { method: 'raw_sign', ...raw }, useOf(wallet, ofRaw))).resolves.toBeDefined();
  const changed = { method: 'raw_sign', params: { hash: `0x${'12'.repeat(32)}` } };
  await expect(signs(wallet, changed, useOf(wallet, ofRaw))).rejects.toThrow();
});

test('of a transaction to be sent, nonce, gas and fees are filled in and nothing else is changed', async () => {
  const owner = newOwner();
  const wallet = await walletOf(ofKey(owner));
  const [to, thief] = [newAddress(), newAddress()];
  const asked = { to, value: '0x10', data: '0x0012' };
  const body = { method: 'eth_sendTransaction', caip2: 'eip155:1', params: { transaction: asked } };
  const use = useOf(wallet, signedBy([owner], { path: rpc(wallet), body }));
  const filled = {
    ...{ type: 2, from: wallet.address, chain_id: 1, nonce: 7, gas_limit: '0x5300' },
    ...{ max_fee_per_gas: '0x77359400', max_priority_fee_per_gas: '0x3b9aca00' },
  };
  const task = (transaction: object) => ({ method: 'eth_signTransaction', params: { transaction } });
  const sent = (await signs(wallet, task({ ...asked, value: 16, ...filled }), use)) as {
    signed_transaction: `0x${string}`;
  };
  const parsed = parseTransaction(sent.signed_transaction);
  expect(parsed).toMatchObject({ to: to.toLowerCase(), value: 16n, nonce: 7, chainId: 1 });
  const forged = [
    { to: thief },
    { value: '0x11' },
    { data: '0x12' },
    { data: '0x0013' },
    { chain_id: 10 },
    { authorization_list: [] },
    { access_list: [{ address: thief, storage_keys: [] }] },
    { to: undefined },
  ];
  for (const change of forged) {
    const altered = task({ ...asked, ...filled, ...change });
    await expect(signs(wallet, altered, use), JSON.stringify(change)).rejects.toThrow();
  }
  // A delegation of the account to a contract of the attacker is no part of it.
  const delegation = {
    method: 'eth_sign7702Authorization',
    params: { contract: thief, chain_id: 1, nonce: 7 },
  };
  await expect(signs(wallet, delegation, use)).rejects.toThrow();
  const sponsored = useOf(wallet, signedBy([owner], { path: rpc(wallet), body: { ...body, sponsor: true } }));
  await expect(signs(wallet, delegation, sponsored)).rejects.toThrow();
});

test('a swap authorizes no message, and no delegation', async () => {
  const owner = newOwner();
  const wallet = await walletOf(ofKey(owner));
  const path = `/v1/wallets/${wallet.binding.rowId}/swap`;
  const { body, call } = smallSwap(router, wallet.address);
  const use = useOf(wallet, signedBy([owner], { path, body }));
  const fees = { ...{ type: 0, chain_id: 1, nonce: 0, gas_limit: 21_000 }, gas_price: 1 };
  const built = { method: 'eth_signTransaction', params: { transaction: { ...call, ...fees } } };
  await expect(signs(wallet, built, use)).resolves.toHaveProperty('signed_transaction');
  const delegation = (contract: string, chainId: unknown) => ({
    method: 'eth_sign7702Authorization',
    params: { contract, chain_id: chainId, nonce: 0 },
  });
  const ours = '0xe6Cae83BdE06E4c305530e199D7217f42808555B';
  const forged = [hello, delegation(newAddress(), 1), delegation(ours, 1), delegation(ours, 0)];
  for (const task of forged) {
    await expect(signs(wallet, task, use)).rejects.toThrow('asks for something else');
  }
});

test('a transfer on one chain authorizes nothing of another one, whose keys are on the same curve', async () => {
  const owner = newOwner();
  const path = '/v1/wallets/wallet/transfer';
  const evidence = signedBy([owner], { path, body: { source: {}, destination: {} } });
  // What is signed is the SHA-256 of this JSON, as for transactions of some chains.
  const spark = { method: 'spark_operation', params: { account_number: '1', msgs: [], sequence: '0' } };
  const tron = {
    method: 'tron_signTransaction',
    params: {
      raw_data: {
        ...{ ref_block_bytes: '0000', ref_block_hash: '0000000000000000', expiration: 1, timestamp: 1 },
        contract: [{ type: 'TransferContract', to_address: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC', amount: 1 }],
      },
    },
  };
  const ethereum = {
    method: 'eth_signTransaction',
    params: { transaction: { type: 0, to: newAddress(), value: 1, chain_id: 1, nonce: 0, gas_price: 1 } },
  };
  for (const chainType of ['ethereum', 'tron', 'spark', 'solana', 'cosmos']) {
    const wallet = await server.walletOf({ owner: ofKey(owner), chainType });
    const others = { ethereum, tron, spark };
    for (const [ofChain, task] of Object.entries(others)) {
      if (ofChain === chainType) continue;
      const what = `${ofChain} with a key of ${chainType}`;
      await expect(signs(wallet, task, useOf(wallet, evidence)), what).rejects.toThrow(
        'expected a method of',
      );
    }
  }
});

test('a quorum signs when its threshold is met, nested members and signers included', async () => {
  const [one, two, three, clerk, user] = [newOwner(), newOwner(), newOwner(), newOwner(), newOwner()];
  const board = quorum('board', { threshold: 1, publicKeys: [two.publicKey, three.publicKey] });
  const owners = quorum('owners', {
    ...{ threshold: 2, publicKeys: [one.publicKey], userIds: ['did:service:bob'] },
    quorums: [quorumReference(board.base)],
  });
  const wallet = await walletOf(owners, [quorum('clerks', { publicKeys: [clerk.publicKey] })]);
  const full = { ...wallet, quorums: [...wallet.quorums, board] };
  const request = { path: rpc(wallet), body: hello };
  const attempt = (signers: Owner[], more: object = {}) =>
    signs(wallet, hello, { ...useOf(full, signedBy(signers, request)), ...more });
  await expect(attempt([one, two])).resolves.toHaveProperty('signature');
  await expect(attempt([one, three])).resolves.toHaveProperty('signature');
  await expect(attempt([clerk])).resolves.toHaveProperty('signature');
  await expect(attempt([one])).rejects.toThrow('lacks signatures');
  await expect(attempt([one, one])).rejects.toThrow('lacks signatures');
  await expect(attempt([two, three])).rejects.toThrow('lacks signatures');
  // The keys of users are what the server says, so a user counts as one member of several only.
  const userKeys = { 'did:service:bob': [user.publicKey] };
  await expect(attempt([one, user], { userKeys })).resolves.toHaveProperty('signature');
  await expect(attempt([user], { userKeys })).rejects.toThrow('lacks signatures');
  // A nested quorum of other members has another reference.
  const forged = { ...full, quorums: [...wallet.quorums, quorum('board', { publicKeys: [user.publicKey] })] };
  const use = useOf(forged, signedBy([one, user], request));
  await expect(signs(wallet, hello, use)).rejects.toThrow('lacks signatures');
});

test('an intent is authorized by the signatures that were collected, all of one request', async () => {
  const [one, two] = [newOwner(), newOwner()];
  const wallet = await walletOf(quorum('owners', { publicKeys: [one.publicKey, two.publicKey] }));
  const path = rpc(wallet);
  const requests = [one, two].flatMap((owner) => signedBy([owner], { path, body: hello }).requests);
  await expect(signs(wallet, hello, useOf(wallet, { requests }))).resolves.toHaveProperty('signature');
  const [first] = requests;
  const different = [first, ...signedBy([two], { path, body: robbery }).requests];
  await expect(signs(wallet, hello, useOf(wallet, { requests: different }))).rejects.toThrow();
  await expect(signs(wallet, hello, useOf(wallet, { requests: [first] }))).rejects.toThrow();
});

test('an export goes to the recipient that the owner has named, and signers have none', async () => {
  const [owner, clerk] = [newOwner(), newOwner()];
  const wallet = await walletOf(ofKey(owner), [quorum('clerks', { publicKeys: [clerk.publicKey] })]);
  const own = await hpkeRecipientFromSeed(randomBytes(32));
  const thief = await hpkeRecipientFromSeed(randomBytes(32));
  const body = { encryption_type: 'HPKE', recipient_public_key: encodeP256PublicKey(own.publicKeyBytes) };
  const path = `/v1/wallets/${wallet.binding.rowId}/export`;
  const asked = async (recipient: Uint8Array, by: Owner, form = 'private-key', at = path) => {
    const json = { key: 'test', binding: wallet.binding, form };
    const use = useOf(wallet, signedBy([by], { path: at, body }));
    return call('exportWalletKey', [...wallet.parts, recipient], { ...json, use });
  };
  const { parts } = await asked(own.publicKeyBytes, owner);
  const key = await openHpke({
    recipientPrivateKeyBytes: own.privateKeyBytes,
    ...{ encapsulatedKey: parts[0]!, ciphertext: parts[1]! },
  });
  const hex = `0x${Buffer.from(key).toString().replace(/^0x/, '')}` as const;
  expect(privateKeyToAccount(hex).address).toBe(wallet.address);
  await expect(asked(thief.publicKeyBytes, owner)).rejects.toThrow('asks for something else');
  await expect(asked(own.publicKeyBytes, owner, 'phrase')).rejects.toThrow('asks for something else');
  await expect(asked(own.publicKeyBytes, owner, 'private-key', rpc(wallet))).rejects.toThrow();
  await expect(asked(own.publicKeyBytes, clerk)).rejects.toThrow('lacks signatures');
  // What the owner signed for a message is no export.
  const use = useOf(wallet, signedBy([owner], { path: rpc(wallet), body: hello }));
  const json = { key: 'test', binding: wallet.binding, form: 'private-key', use };
  await expect(call('exportWalletKey', [...wallet.parts, thief.publicKeyBytes], json)).rejects.toThrow(
    'asks for something else',
  );
});

test('only its owner gives a wallet to another owner, and the former one has lost it', async () => {
  const [owner, next, clerk, attacker] = [newOwner(), newOwner(), newOwner(), newOwner()];
  const clerks = quorum('clerks', { publicKeys: [clerk.publicKey] });
  const wallet = await walletOf(ofKey(owner), [clerks]);
  const path = `/v1/wallets/${wallet.binding.rowId}`;
  const change = async (
    by: Owner,
    body: object,
    quorums: readonly QuorumRecord[] = [],
  ): Promise<SealedWallet> => {
    const evidence = signedBy([by], { path, body, method: 'PATCH' });
    const use = { ...useOf(wallet, evidence), quorums: [...wallet.quorums, ...quorums] };
    const json = { key: 'test', binding: wallet.binding, use };
    const { parts, json: changed } = await call('changeAuthority', wallet.parts, json);
    const { authority } = changed as { authority: WalletAuthority };
    return { ...wallet, parts, authority, quorums: [...wallet.quorums, ...quorums] };
  };
  const nextOwner = ofKey(next, 'next');
  const handOver = { owner: { public_key: next.publicKey }, additional_signers: [] };
  const given = await change(owner, handOver, [nextOwner]);
  const after = { ...given, quorums: [nextOwner, ofKey(owner), clerks] };
  await expect(change(owner, handOver, [ofKey(attacker, 'next')])).rejects.toThrow('of the owner');
  const request = { path: rpc(wallet), body: hello };
  await expect(signs(after, hello, useOf(after, signedBy([next], request)))).resolves.toHaveProperty(
    'signature',
  );
  for (const former of [owner, clerk]) {
    await expect(signs(after, hello, useOf(after, signedBy([former], request)))).rejects.toThrow();
    // The authority from before does not open the key as it is sealed now.
    const old = { ...useOf(wallet, signedBy([former], request)) };
    await expect(signs(after, hello, old)).rejects.toThrow();
  }
  for (const by of [clerk, attacker]) {
    await expect(
      change(by, { owner: { public_key: attacker.publicKey } }, [ofKey(attacker)]),
    ).rejects.toThrow('lacks signatures');
  }
  // Signers are those that the owner named, by their ids.
  const withClerk = await change(owner, { additional_signers: [{ signer_id: 'clerks' }] });
  expect(withClerk.authority.signers).toEqual([quorumReference(clerks.base)]);
  const fake = quorum('others', { publicKeys: [attacker.publicKey] });
  await expect(change(owner, { additional_signers: [{ signer_id: 'unknown' }] }, [fake])).rejects.toThrow(
    'a record of the key quorum',
  );
  // Nothing but a change of the wallet changes who owns it.
  const evidence = signedBy([owner], {
    path: rpc(wallet),
    body: { owner: { public_key: attacker.publicKey } },
  });
  const json = { key: 'test', binding: wallet.binding, use: useOf(wallet, evidence) };
  await expect(call('changeAuthority', wallet.parts, json)).rejects.toThrow('expected a change of a wallet');
});

test('an automation signs transactions without a request, after the owner agreed to it', async () => {
  const [owner, attacker] = [newOwner(), newOwner()];
  const wallet = await walletOf(ofKey(owner));
  const path = `/v1/wallets/${wallet.binding.rowId}/automations/attach`;
  const attach = { path, body: { automation_ids: ['sweep'] } };
  const agree = async (
    by: Owner,
    request: { path: string; body: object } = attach,
  ): Promise<SealedWallet> => {
    const use = useOf(wallet, signedBy([by], request));
    const json = { key: 'test', binding: wallet.binding, use };
    const { parts, json: changed } = await call('changeAuthority', wallet.parts, json);
    return { ...wallet, parts, authority: (changed as { authority: WalletAuthority }).authority };
  };
  await expect(agree(attacker)).rejects.toThrow('lacks signatures');
  const deposits = (strategy: string) => ({
    path: `/v1/wallets/${wallet.binding.rowId}/deposit_accounts/crypto`,
    body: { deposit_address_strategy: strategy },
  });
  await expect(agree(owner, deposits('dedicated'))).rejects.toThrow('expected a change of a wallet');
  await expect(agree(owner, deposits('prefer_destination'))).resolves.toHaveProperty(
    'authority.isAutomated',
    true,
  );
  const automated = await agree(owner);
  const transaction = {
    ...{ type: 0, to: newAddress(), value: 1, chain_id: 1 },
    nonce: 0,
    gas_limit: 21_000,
    gas_price: 1,
  };
  const sweep = { method: 'eth_signTransaction', params: { transaction } };
  await expect(signs(automated, sweep, useOf(automated))).resolves.toHaveProperty('signed_transaction');
  await expect(signs(automated, hello, useOf(automated))).rejects.toThrow('expected a request');
  const { chain_id: _, ...ofNoChain } = sweep.params.transaction;
  const everywhere = { ...sweep, params: { transaction: ofNoChain } };
  await expect(signs(automated, everywhere, useOf(automated))).rejects.toThrow('expected a request');
});

test('a key quorum changes by requests of its members, one after the other', async () => {
  const [first, second, third, attacker] = [newOwner(), newOwner(), newOwner(), newOwner()];
  const owners = quorum('owners', { threshold: 1, publicKeys: [first.publicKey] });
  const wallet = await walletOf(owners);
  const handOver = (by: Owner, to: Owner, id = 'owners') => ({
    evidence: signedBy([by], {
      ...{ path: `/v1/key_quorums/${id}`, method: 'PATCH', body: { public_keys: [to.publicKey] } },
    }),
    ...{ userKeys: {}, quorums: [] },
  });
  const attempt = async (by: Owner, changes: readonly ReturnType<typeof handOver>[]) => {
    let now = owners;
    for (const change of changes) now = await server.changedQuorum(now, change);
    return uses(by, now);
  };
  const uses = (by: Owner, record: QuorumRecord) => {
    const now = { ...wallet, quorums: [record] };
    return signs(wallet, hello, useOf(now, signedBy([by], { path: rpc(wallet), body: hello })));
  };
  const chain = [handOver(first, second), handOver(second, third)];
  await expect(attempt(third, chain)).resolves.toHaveProperty('signature');
  await expect(attempt(third, chain)).resolves.toHaveProperty('signature');
  await expect(attempt(first, chain)).rejects.toThrow('lacks signatures');
  await expect(attempt(second, chain)).rejects.toThrow('lacks signatures');
  await expect(attempt(third, chain.slice(1))).rejects.toThrow('lacks signatures');
  await expect(attempt(attacker, [handOver(attacker, attacker)])).rejects.toThrow('lacks signatures');
  await expect(attempt(attacker, [...chain, handOver(first, attacker)])).rejects.toThrow('lacks signatures');
  // Not even with the id of another key quorum, whose members are the same, in its record.
  const other = await server.changedQuorum(
    { base: { ...owners.base, id: 'other' }, changes: [] },
    handOver(first, attacker, 'other'),
  );
  const renamed = { ...wallet, quorums: [other] };
  const byAttacker = signedBy([attacker], { path: rpc(wallet), body: hello });
  await expect(signs(renamed, hello, useOf(renamed, byAttacker))).rejects.toThrow();
  const ofAnother = handOver(first, attacker, 'other');
  await expect(attempt(attacker, [ofAnother])).rejects.toThrow('expected a change of the key quorum');
});

test('what is altered at any place of an honest use is refused', async () => {
  const owner = newOwner();
  const wallet = await walletOf(ofKey(owner));
  const payload = signedBy([owner], { path: rpc(wallet), body: hello }).requests[0]!.payload;
  const signature = signPayload(owner, payload);
  const attempt = (text: string, by: string) =>
    signs(wallet, hello, useOf(wallet, { requests: [{ payload: text, signatures: [by] }] }));
  await expect(attempt(payload, signature)).resolves.toHaveProperty('signature');
  for (let at = 0; at < payload.length; at += 3) {
    const altered = `${payload.slice(0, at)}${payload[at] === '1' ? '2' : '1'}${payload.slice(at + 1)}`;
    await expect(attempt(altered, signature), altered).rejects.toThrow();
  }
});

function newAddress(): string {
  return privateKeyToAccount(`0x${randomBytes(32).toString('hex')}`).address;
}
