import { expect, test } from 'vitest';
import { requestValidators } from '../../../src/generated/request-validators.js';
import type { ValidateFunction } from '../../../src/generated/validate-function.ts';
import { requestValidators as controlValidators } from '../../../src/sandbox/generated/request-validators.js';
import { listOperations } from '../../../src/tools/client/call-operation.ts';
import {
  type DescribedField,
  describedDocuments,
  describeOperation,
} from '../../../src/tools/contract/describe-operation.ts';
import { runCommand } from '../../support/run-custos.ts';

type Validators = Readonly<Record<string, { readonly body?: ValidateFunction }>>;

test('describes parameters and body as a tree, required fields first', async () => {
  const { stdout, code } = await runCommand(['describe', 'walletRpc', 'personal_sign']);
  expect(code).toBe(0);
  const lines = stdout.split('\n');
  expect(lines[0]).toBe('walletRpc  POST /v1/wallets/{wallet_id}/rpc');
  const description = lines.slice(3, lines.indexOf('Parameters') - 1);
  const { description: written } = describeOperation('walletRpc')!;
  expect(written.length).toBeGreaterThan(100);
  expect(description.join(' ')).toBe(written);
  expect(Math.max(...description.map(({ length }) => length))).toBeLessThanOrEqual(80);
  const body = lines.slice(lines.indexOf('Body') + 1, lines.indexOf('Errors') - 1);
  const names = body.map((line) => /^( +)(\w+)( +required)?/.exec(line)!);
  const tree = names.map(([, indent, name, required]) => [
    indent!.length / 2 - 1,
    name,
    required !== undefined,
  ]);
  expect(tree.slice(0, 4)).toEqual([
    [0, 'method', true],
    [0, 'params', true],
    [1, 'encoding', true],
    [1, 'message', true],
  ]);
  expect(tree.slice(4).every(([depth, , isRequired]) => depth !== 0 || !isRequired)).toBe(true);
  expect(stdout).toMatch(/\n {2}400 {2}.*policy_violation/);
});

test('names the kinds of bodies that an operation has', async () => {
  const { stdout } = await runCommand(['describe', 'walletRpc']);
  expect(stdout).toMatch(/method is one of .*personal_sign, /);
  const unknown = await runCommand(['describe', 'walletRpc', 'sing']);
  expect(unknown).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected one of eth_signTransaction'),
  });
  const none = await runCommand(['describe', 'getWallet', 'personal_sign']);
  expect(none.stderr).toContain('expected no kind of body, got `personal_sign`');
  const wrong = await runCommand(['describe', 'createWallet', 'ownr']);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/or a field such as .*owner.*, got `ownr`/),
  });
  expect((await runCommand(['describe', 'createWalet'])).stderr).toContain('did you mean `createWallet`');
});

test('shows a field with the members of its alternatives', async () => {
  const bodyOf = async (...args: string[]) =>
    (JSON.parse((await runCommand(['describe', ...args, '--json'])).stdout) as { body: DescribedField[] })
      .body;
  const owner = await bodyOf('createWallet', 'owner');
  expect(owner.map(({ name, depth }) => [name, depth])).toEqual([
    ['owner', 0],
    ['user_id', 1],
    ['public_key', 1],
  ]);
  const transaction = await bodyOf('walletRpc', 'eth_sendTransaction', 'params.transaction');
  expect(transaction[0]).toMatchObject({ name: 'transaction', depth: 0 });
  expect(transaction.find(({ name }) => name === 'value')).toMatchObject({ depth: 1 });
  const [caip2] = await bodyOf('walletRpc', 'eth_sendTransaction', 'caip2');
  expect(caip2!.description).toContain('For example `eip155:8453`.');
});

test('the example of every operation is a valid body', () => {
  const all = { ...requestValidators, ...controlValidators } as Validators;
  const documents = describedDocuments();
  let bodies = 0;
  for (const { id } of listOperations()) {
    for (const [name, body] of Object.entries(describeOperation(id, undefined, documents)!.examples)) {
      const validate = all[id]!.body!;
      expect(validate(structuredClone(body)), `${id} ${name}: ${JSON.stringify(validate.errors)}`).toBe(true);
      bodies += 1;
    }
  }
  expect(bodies).toBeGreaterThan(150);
});

test('--example prints one line for curl, and --json an object', async () => {
  const { stdout } = await runCommand(['describe', 'walletRpc', 'personal_sign', '--example']);
  expect(stdout.trim().split('\n')).toHaveLength(1);
  expect(JSON.parse(stdout)).toMatchObject({ method: 'personal_sign' });
  const none = await runCommand(['describe', 'getWallet', '--example']);
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('`getWallet` has no body') });
  const described = JSON.parse((await runCommand(['describe', 'fundAddress', '--json'])).stdout);
  expect(described).toMatchObject({ operation: 'fundAddress', method: 'POST', kinds: null });
  expect(described.body.map(({ name }: { name: string }) => name).slice(0, 2)).toEqual(['chain', 'address']);
});

test('the help of a call is that of its operation', async () => {
  const { stdout, code } = await runCommand(['call', 'createWallet', '--help']);
  const described = await runCommand(['describe', 'createWallet']);
  expect({ stdout, code }).toEqual({ stdout: described.stdout, code: 0 });
  expect((await runCommand(['call', '--help'])).stdout).toContain('Usage: custos call');
});
