import { beforeEach, expect, test } from 'vitest';
import {
  changeDigests,
  type QuorumChange,
  type QuorumRecord,
} from '../../../src/engine/authorization/quorum-records.ts';
import {
  type CompromisedServer,
  compromisedServer,
  quorum,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, type Owner, signedBy } from '../../support/signer/owner.ts';

// An attacker who controls the server and presents the changes of key quorums, which are years old, as it likes.

const nowMs = 1_900_000_000_000;
const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(nowMs);
  return server.close;
});

function changeOf(
  by: readonly Owner[],
  body: object,
  more: { quorums?: QuorumRecord[]; expiryMs?: number } = {},
) {
  const { quorums = [], expiryMs = nowMs } = more;
  const request = { path: '/v1/key_quorums/owners', method: 'PATCH', body, expiryMs };
  return { evidence: signedBy(by, request), userKeys: {}, quorums } satisfies QuorumChange;
}

/** Whether this party signs for the wallet, as these records have it. */
async function uses(wallet: SealedWallet, by: readonly Owner[], quorums: readonly QuorumRecord[]) {
  const path = `/v1/wallets/${wallet.binding.rowId}/rpc`;
  return server.signs(wallet, hello, useOf({ ...wallet, quorums }, signedBy(by, { path, body: hello })));
}

test('the members of a nested key quorum are those from when a change named it', async () => {
  const [first, inner, attacker] = [newOwner(), newOwner(), newOwner()];
  const owners = quorum('owners', { threshold: 1, publicKeys: [first.publicKey] });
  const nested = quorum('nested', { threshold: 1, publicKeys: [inner.publicKey] });
  const wallet = await server.walletOf({ owner: owners });
  const change = changeOf([first], { key_quorum_ids: ['nested'] }, { quorums: [nested] });
  const record = await server.changedQuorum(owners, change);
  await expect(uses(wallet, [inner], [record, nested])).resolves.toHaveProperty('signature');

  const fake = quorum('nested', { threshold: 1, publicKeys: [attacker.publicKey] });
  const forged = { ...record, changes: [{ ...change, quorums: [fake] }] };
  await expect(uses(wallet, [attacker], [forged, fake])).rejects.toThrow();
  await expect(uses(wallet, [attacker], [{ ...forged, seal: undefined }, fake])).rejects.toThrow(
    'expected the seal of the changes of the key quorum `owners`',
  );
});

test('no change of a key quorum is left out, exchanged or taken from another time', async () => {
  const [first, second, third] = [newOwner(), newOwner(), newOwner()];
  const owners = quorum('owners', { threshold: 1, publicKeys: [first.publicKey] });
  const wallet = await server.walletOf({ owner: owners });
  const both = changeOf([first], {
    ...{ public_keys: [first.publicKey, second.publicKey], authorization_threshold: 2 },
  });
  const all = changeOf([first, second], {
    public_keys: [first, second, third].map(({ publicKey }) => publicKey),
  });
  const halfway = await server.changedQuorum(owners, both);
  const record = await server.changedQuorum(halfway, all);
  await expect(uses(wallet, [third, second], [record])).resolves.toHaveProperty('signature');
  await expect(uses(wallet, [third], [record])).rejects.toThrow('lacks signatures');
  // Without the change of the threshold, one of the three could sign alone.
  for (const seal of [record.seal, halfway.seal, undefined]) {
    await expect(uses(wallet, [third], [{ ...owners, changes: [all], seal }])).rejects.toThrow();
  }
  for (const changes of [[both, all, both], [all, both], [both]]) {
    await expect(uses(wallet, [first, second], [{ ...record, changes }])).rejects.toThrow();
  }
  // What its members signed long ago does not become its next change, and neither does a change of what was forged.
  const old = changeOf([first, second], { authorization_threshold: 1 }, { expiryMs: nowMs - 60_001 });
  await expect(server.changedQuorum(record, old)).rejects.toThrow('has expired');
  const again = changeOf([first], { authorization_threshold: 1 });
  const forged = { ...owners, changes: [all], seal: record.seal };
  await expect(server.changedQuorum(forged, again)).rejects.toThrow();
  const withForged = changeOf([first, second], { key_quorum_ids: [] }, { quorums: [forged] });
  await expect(server.changedQuorum(record, withForged)).rejects.toThrow();
});

test('no other operation makes the seal of a change', async () => {
  const [first, attacker] = [newOwner(), newOwner()];
  const owners = quorum('owners', { threshold: 1, publicKeys: [first.publicKey] });
  const wallet = await server.walletOf({ owner: owners });
  const nested = quorum('nested', { threshold: 1, publicKeys: [attacker.publicKey] });
  const changes = [
    changeOf([first], { key_quorum_ids: ['nested'] }, { quorums: [nested], expiryMs: nowMs - 60_001 }),
  ];
  const authority = changeDigests({ ...owners, changes }).at(-1)!;
  const binding = { purpose: 'key-quorum-changes', rowId: 'owners', appId: 'acme', authority };
  const secret = Buffer.alloc(32, 1);
  const attacks = {
    seal: [secret],
    createWalletKey: [],
    createImportKey: [],
    createTokenKey: [],
    createFingerprintKey: [],
    createLogKey: [],
    sealPolicy: [],
  } as const;
  for (const [name, parts] of Object.entries(attacks)) {
    const made = server.call(name as keyof typeof attacks, parts, { binding, content: {} });
    await expect(made, name).rejects.toThrow(/purpose|does not leave the key store/);
  }
  // Nor a seal of another purpose.
  for (const purpose of ['webhook-secret', 'policy', 'ethereum', 'fingerprint-key']) {
    const name = {
      policy: 'sealPolicy',
      ethereum: 'createWalletKey',
      'fingerprint-key': 'createFingerprintKey',
    }[purpose] as keyof typeof attacks | undefined;
    const { parts } = await server.call(name ?? 'seal', name === undefined ? [secret] : [], {
      ...{ binding: { ...binding, purpose }, content: { chainType: 'ethereum', owner: null, rules: [] } },
    });
    const [sealedSecret, wrappedDataKey] = parts.map((part) => Buffer.from(part).toString('base64'));
    const seal = { sealedSecret: sealedSecret!, wrappedDataKey: wrappedDataKey!, masterKeyId: 'test' };
    await expect(uses(wallet, [attacker], [{ ...owners, changes, seal }, nested]), purpose).rejects.toThrow();
  }
});
