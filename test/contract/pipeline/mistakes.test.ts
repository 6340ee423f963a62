import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.ts';
import type { RecordedExchange, SentRequest } from '../../../src/sandbox/generated/schemas.ts';
import { attempt, control } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { mistakes } from './mistakes.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ hints: true });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function recorded(id: string): Promise<RecordedExchange> {
  const { body } = await control(sandbox, 'GET', `/_sandbox/requests/${id}`);
  return body as unknown as RecordedExchange;
}

/** What `custos why` prints about a request. */
async function printed(id: string): Promise<string> {
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  await runCommandLine(['why', id, '--url', sandbox.baseUrl, '--ca-file', sandbox.caFile]);
  spy.mockRestore();
  return lines.join('\n');
}

/** A pattern for a text in which `…` stands for any other text. */
function patternOf(text: string): RegExp {
  const parts = text.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.+')}$`);
}

test('there are at least seventy mistakes', () => {
  expect(Object.keys(mistakes).length).toBeGreaterThanOrEqual(70);
});

describe('a mistake is explained:', () => {
  test.each(Object.entries(mistakes))('%s', async (_, [make, text]) => {
    const { status, code, response, why } = await recorded(await make(sandbox));
    expect(status).toBeGreaterThanOrEqual(400);
    const { hint, problems, repairs, docs } = why!;
    expect(hint).toMatch(patternOf(text));
    expect((response.body as { data: { hint: string } }).data.hint).toBe(hint);

    for (const { subject, expected, came, text: told, next_step: step } of problems) {
      for (const part of [subject, expected, came, told, step]) expect(part).toMatch(/\S/);
      expect(step).toMatch(/[.?]$/);
    }
    if (problems.length === 1) expect(hint).toBe(`${problems[0]!.text} ${problems[0]!.next_step}`);

    expect(docs).toBe(`/docs/errors/${code}`);
    const page = await sandbox.dispatcher.request({ origin: sandbox.baseUrl, path: docs!, method: 'GET' });
    expect(page.statusCode).toBe(200);
    expect(await page.body.text()).toContain(`<h1 id="${code}">${code}</h1>`);
    for (const { title } of repairs) expect(title).toMatch(/^[A-Z]/);
  });

  test.each(Object.entries(mistakes))('%s, by `custos why`', async (_, [make]) => {
    const { id, why } = await recorded(await make(sandbox));
    const text = await printed(id);
    const { problems, repairs, docs } = why!;
    for (const { text: told, next_step: step } of problems) {
      expect(text).toContain(told);
      expect(text).toContain(step);
    }
    for (const { title } of repairs) expect(text).toContain(`${title}:`);
    expect(text).toContain(docs);
  });
});

test('a request beyond the rate limit is explained with the time to wait', async () => {
  await using limited = await startSandbox({ hints: true, rateLimit: { perSecond: 1, burst: 2 } });
  const answers = [];
  for (let count = 0; count < 3; count += 1) answers.push(await attempt(limited, 'listWallets', {}));
  const { status, headers } = answers.at(-1)!;
  expect(status).toBe(429);
  const { body } = await control(limited, 'GET', `/_sandbox/requests/${String(headers['x-request-id'])}`);
  const { why } = body as object as RecordedExchange;
  expect(why!.hint).toBe(
    'The rate limit of `listWallets`: expected fewer requests per minute, got more requests than the limit allows. Wait 1 s; `--rate-limit` sets the limit of a sandbox.',
  );
});

describe('the repairs of a mistake let the request succeed:', () => {
  test.each([
    'the key of another person',
    'a URL that ends in a slash',
    'a quorum that is short',
    'an expired request',
    'the prefix of a brand',
    'a wrong secret',
    'a misspelled field',
    'a method in another spelling',
    'a chain in place of its type',
    'an owner by another name',
    'a misspelled wallet',
    'the app secret as a bearer token',
    'a user who is not verified',
    'a fault rule',
    'an archived wallet',
    'a nonce that was used',
  ])('%s', async (name) => {
    const { id, why } = await recorded(await mistakes[name]![0](sandbox));
    let last: SentRequest | undefined;
    for (const repair of why!.repairs) {
      if (repair.kind === 'command') continue;
      if (repair.kind === 'repeat') {
        const sent = await control(sandbox, 'POST', `/_sandbox/requests/${id}/replay`, repair.repeat);
        last = sent.body as unknown as SentRequest;
        continue;
      }
      const [method, path] = calls[repair.operation]!;
      const target = path.replace(/\{(\w+)\}/, (_, name: string) => repair.path?.[name] ?? '');
      const { status } = await control(sandbox, method, target, repair.body as object | undefined);
      expect([repair.title, status < 500]).toEqual([repair.title, true]);
    }
    expect(last?.status).toBeLessThan(300);
  });
});

/** The requests of the control plane that repairs call. */
const calls: Readonly<Record<string, readonly ['POST' | 'DELETE', string]>> = {
  decideVerification: ['POST', '/_sandbox/verifications'],
  removeFault: ['DELETE', '/_sandbox/faults/{fault_id}'],
  restoreWallet: ['POST', '/_sandbox/wallets/{wallet_id}/restore'],
};
