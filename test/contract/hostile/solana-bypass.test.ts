import {
  AddressLookupTableAccount,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { beforeAll, expect, test } from 'vitest';
import { attempt } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { allow, deny, makeWallet, type Rule } from '../policies/enforced/policies.ts';

const key = (fill: number) => new PublicKey(new Uint8Array(32).fill(fill));
const [payee, thief] = [key(7), key(8)];
const recentBlockhash = PublicKey.default.toBase58();
const when = (field: string, operator: string, value: string) =>
  ({
    field_source: 'solana_system_program_instruction',
    field,
    operator,
    value,
  }) as Rule['conditions'][number];
const toPayee = when('Transfer.to', 'eq', payee.toBase58());
const upToFive = when('Transfer.lamports', 'lte', '5');

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  return () => sandbox[Symbol.asyncDispose]();
});

async function judge(wallet: { id: string }, method: string, params: object) {
  const { status, body } = await attempt(sandbox, 'walletRpc', {
    path: { wallet_id: wallet.id },
    body: { method, params },
  });
  const { code = 'allowed', data } = body as { code?: string; data: unknown };
  return { outcome: status === 200 ? 'allowed' : code, data };
}

/** A version 0 transfer whose recipient is in an address lookup table. */
function behindTable(wallet: { address: string }, to: PublicKey): Uint8Array {
  const table = new AddressLookupTableAccount({
    key: key(9),
    state: {
      deactivationSlot: 2n ** 64n - 1n,
      lastExtendedSlot: 0,
      lastExtendedSlotStartIndex: 0,
      authority: undefined as never,
      addresses: [to],
    },
  });
  const payerKey = new PublicKey(wallet.address);
  const instructions = [SystemProgram.transfer({ fromPubkey: payerKey, toPubkey: to, lamports: 5 })];
  const message = new TransactionMessage({ payerKey, recentBlockhash, instructions });
  return new VersionedTransaction(message.compileToV0Message([table])).serialize();
}

test('a recipient in an address lookup table is not allowed, and the trace says why', async () => {
  const signing = (wire: Uint8Array) => ({
    transaction: Buffer.from(wire).toString('base64'),
    encoding: 'base64',
  });
  const outcomeUnder = async (...rules: Rule[]) => {
    const wallet = await makeWallet(sandbox, 'solana', { rules });
    return judge(wallet, 'signTransaction', signing(behindTable(wallet, payee)));
  };
  const refused = await outcomeUnder(allow('signTransaction', toPayee, upToFive));
  expect(refused).toMatchObject({
    outcome: 'policy_violation',
    data: {
      decision: {
        units: [
          {
            outcome: 'no_rule_matched',
            rules: [
              {
                conditions: [
                  {
                    observed: {
                      state: 'unreadable',
                      reason: 'the account is behind an address lookup table',
                    },
                    result: 'unknown',
                  },
                  { observed: { state: 'present', values: ['5'] }, result: 'true' },
                ],
              },
            ],
          },
        ],
      },
    },
  });
  const notThief = deny('signTransaction', when('Transfer.to', 'eq', thief.toBase58()));
  expect((await outcomeUnder(allow('signTransaction'), notThief)).outcome).toBe('policy_violation');
  expect((await outcomeUnder(allow('signTransaction', upToFive))).outcome).toBe('allowed');
});

test('bytes that may be a transaction of a future version are not a message', async () => {
  const wallet = await makeWallet(sandbox, 'solana', { rules: [allow('signMessage')] });
  const sign = async (bytes: Uint8Array) => {
    const params = { message: Buffer.from(bytes).toString('base64'), encoding: 'base64' };
    return (await judge(wallet, 'signMessage', params)).outcome;
  };
  const bytesOf = (first: number, length: number) =>
    Uint8Array.from({ length }, (_, at) => (at === 0 ? first : 1));
  expect(await sign(bytesOf(0x81, 68))).toBe('policy_violation');
  expect(await sign(bytesOf(0xfe, 68))).toBe('policy_violation');
  // Too short for a transaction, the mark of off-chain messages, and text.
  expect(await sign(bytesOf(0x81, 67))).toBe('allowed');
  expect(
    await sign(Buffer.concat([Uint8Array.of(0xff), Buffer.from(`solana offchain${'.'.repeat(80)}`)])),
  ).toBe('allowed');
  expect(await sign(Buffer.from('a'.repeat(100)))).toBe('allowed');
});
