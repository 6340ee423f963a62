import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const absent = { status: 404, body: { error: 'User not found' } };

async function makeCarol(sandbox: TestSandbox) {
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [
        { type: 'email', address: 'carol@example.com' },
        { type: 'phone', number: '+1 202 555 0143' },
        { type: 'google_oauth', subject: '1149', email: 'C.Jones@mail.example', name: 'Carol Jönes' },
        { type: 'discord_oauth', subject: '80351110224678912', username: 'caz' },
        { type: 'wallet', chain_type: 'ethereum', address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a' },
      ],
      wallets: [{ chain_type: 'solana' }],
    },
  });
  return body;
}

test('a term finds the user by id, address, number and name, in full or by prefix', async () => {
  await using sandbox = await startSandbox();
  const carol = await makeCarol(sandbox);
  const other = await asOtherApp(sandbox);
  const solana = carol.linked_accounts.at(-1) as { address: string };
  const terms = [
    carol.id,
    carol.id.slice('did:service:'.length),
    'CAROL@example.com',
    'carol@',
    '2025550143',
    '+1 (202) 555-0143',
    '+1202555',
    'c.jones@mail.example',
    'carol jönes',
    'CAROL J',
    'caz',
    '80351110224678912',
    '0xB6716976A3EBE8D39ACEB04372F22FF8E6802D7A',
    '0xb67169',
    solana.address,
  ];
  for (const searchTerm of terms) {
    expect((await call(sandbox, 'searchUsers', { body: { searchTerm } })).body, searchTerm).toEqual(carol);
    expect(await refusal(other, 'searchUsers', { body: { searchTerm } })).toEqual(absent);
  }
  for (const searchTerm of ['arol', 'carol@example.org', ' ', '%', '_', '\ud800', 'é'.repeat(4000)]) {
    expect(await refusal(sandbox, 'searchUsers', { body: { searchTerm } }), searchTerm).toEqual(absent);
  }
});

test('of several matches the newest user is returned, and a full match before a prefix', async () => {
  await using sandbox = await startSandbox();
  const ids: string[] = [];
  for (const username of ['max-1', 'max', 'max-2', 'max-3']) {
    sandbox.clock.advance(1000);
    const { body } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'github_oauth', subject: username, username, name: 'Max Power' }] },
    });
    ids.push(body.id);
  }
  const find = async (searchTerm: string) =>
    (await call(sandbox, 'searchUsers', { body: { searchTerm } })).body.id;
  expect(await find('max power')).toBe(ids[3]);
  expect(await find('max-')).toBe(ids[3]);
  expect(await find('MAX')).toBe(ids[1]);
  await call(sandbox, 'deleteUser', { path: { user_id: ids[3]! } });
  expect(await find('max-')).toBe(ids[2]);
});

test('changed and unlinked accounts are found by their current values only', async () => {
  await using sandbox = await startSandbox();
  const { id } = await makeCarol(sandbox);
  const link = {
    type: 'google_oauth',
    subject: '1149',
    email: 'new@mail.example',
    name: 'Carol King',
  } as const;
  await call(sandbox, 'linkUserAccount', { path: { user_id: id }, body: link });
  await call(sandbox, 'unlinkUserAccount', {
    path: { user_id: id },
    body: { type: 'email', handle: 'carol@example.com' },
  });
  expect((await call(sandbox, 'searchUsers', { body: { searchTerm: 'carol king' } })).body.id).toBe(id);
  for (const searchTerm of ['carol j', 'c.jones@mail.example', 'carol@example.com']) {
    expect(await refusal(sandbox, 'searchUsers', { body: { searchTerm } })).toEqual(absent);
  }
});

test('any of the identifiers may match; an invalid one matches no user', async () => {
  await using sandbox = await startSandbox();
  const carol = await makeCarol(sandbox);
  const none = { emails: [], phoneNumbers: [], walletAddresses: [] };
  const fitting = [
    { ...none, emails: ['x@example.com', 'CAROL@example.com'] },
    { ...none, phoneNumbers: ['not a number', '(202) 555-0143'] },
    { ...none, walletAddresses: ['x', '0xB6716976A3EBE8D39ACEB04372F22FF8E6802D7A'] },
    {
      ...none,
      emails: Array.from({ length: 199 }, (_, index) => `${index}@x.org`).concat('carol@example.com'),
    },
  ];
  for (const body of fitting) expect((await call(sandbox, 'searchUsers', { body })).body).toEqual(carol);
  for (const body of [none, { ...none, emails: ['', 'x'], phoneNumbers: [''], walletAddresses: [''] }]) {
    expect(await refusal(sandbox, 'searchUsers', { body })).toEqual(absent);
  }
});

test('a term together with a list, a missing list and an unknown field are refused', async () => {
  await using sandbox = await startSandbox();
  const bodies = [
    {},
    { searchTerm: '' },
    { searchTerm: 'x', emails: [] },
    { emails: [], phoneNumbers: [] },
    { search_term: 'x' },
  ];
  for (const body of bodies) {
    const refused = await refusal(sandbox, 'searchUsers', { body });
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 400,
      code: 'invalid_data',
    });
  }
});
