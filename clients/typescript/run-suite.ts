import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import canonicalize from 'canonicalize';
import {
  ApiError,
  type CallOptions,
  ConnectionError,
  createClient,
  keySigner,
  UnexpectedAnswerError,
} from './src/client.ts';
import { exportPrivateKey, importPrivateKey, userSigner } from './src/keys.ts';
import type { Signer } from './src/signing.ts';
import { verifyWebhook, WebhookVerificationError } from './src/webhooks.ts';

// Runs the cases of a file (../README.md) and prints one line for each: node run-suite.ts <base URL> <file> [<case>]

interface ClientSettings {
  readonly base_url?: string;
  readonly prefix?: string;
  readonly app_secret?: string;
  readonly user_token?: string;
  readonly signers?: readonly string[];
  readonly retries?: number;
  readonly timeout_ms?: number;
  readonly request_expiry_ms?: number;
  readonly now_ms?: number;
}
interface ControlRequest {
  readonly request: string;
  readonly body?: unknown;
  readonly save?: Readonly<Record<string, string>>;
}
interface Step {
  readonly do?: string;
  readonly operation: string;
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
  readonly signers?: readonly string[];
  readonly idempotency_key?: string;
  readonly idempotency_header?: string;
  readonly times?: number;
  readonly request_expiry_ms?: number;
  readonly show?: readonly string[];
  readonly save?: Readonly<Record<string, string>>;
  readonly take?: number;
}
interface VerifyStep {
  readonly secret: string;
  readonly id: string;
  readonly body: string;
  readonly age_seconds?: number;
  readonly signed_body?: string;
  readonly signed_with?: readonly string[];
  readonly headers?: Readonly<Record<string, string | null>>;
}
interface Case {
  readonly name: string;
  readonly client?: ClientSettings;
  readonly setup?: readonly ControlRequest[];
  readonly steps: readonly Step[];
  readonly arrived?: false;
}
type AnyOperation = (input: object, options: CallOptions) => Promise<unknown>;

const [, , baseUrl = '', path = '', only] = process.argv;
const world = JSON.parse(readFileSync(join(import.meta.dirname, '../suite/world.json'), 'utf8'));
const file = JSON.parse(readFileSync(path, 'utf8')) as { offline?: true; cases: Case[] };

async function control(request: string, body?: unknown): Promise<unknown> {
  const [method = '', target] = request.split(' ');
  const response = await fetch(`${baseUrl}${target}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  if (!response.ok) throw new Error(`${request}: ${response.status} ${await response.text()}`);
  return response.json();
}

function valueAt(value: unknown, pointer: string): unknown {
  const steps = pointer.split('/').slice(1);
  return steps.reduce((at: unknown, step) => (at as Record<string, unknown> | null)?.[step], value) ?? null;
}

async function runCase({ name, client: settings = {}, setup = [], steps, arrived }: Case): Promise<object> {
  const saved: Record<string, string> = {};
  const fill = <Value>(value: Value): Value =>
    JSON.parse(JSON.stringify(value), (_, each) =>
      typeof each === 'string' ? each.replace(/\$\{(\w+)\}/g, (_, key: string) => saved[key] ?? '') : each,
    );
  const save = (names: Readonly<Record<string, string>> = {}, body: unknown) => {
    for (const [key, pointer] of Object.entries(names)) saved[key] = String(valueAt(body, pointer));
  };
  if (!file.offline) {
    await control('POST /_sandbox/reset');
    await control('DELETE /_sandbox/requests');
  }
  for (const each of setup)
    save(each.save, await control(fill(each.request), each.body === undefined ? undefined : fill(each.body)));

  const signers: Record<string, Signer> = {};
  for (const [key, privateKey] of Object.entries<string>(world.signers)) signers[key] = keySigner(privateKey);
  const named = (names: readonly string[]) => names.map((each) => signers[each]!);
  const waits: number[] = [];
  let keys = 0;
  const { base_url, prefix, app_secret, user_token, retries, timeout_ms, request_expiry_ms, now_ms } =
    fill(settings);
  const client = createClient({
    baseUrl: base_url ?? baseUrl,
    appId: world.app_id,
    appSecret: app_secret ?? world.app_secret,
    signers: named(settings.signers ?? []),
    ...(prefix === undefined ? {} : { prefix }),
    ...(user_token === undefined ? {} : { userToken: user_token }),
    ...(retries === undefined ? {} : { retries }),
    ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
    ...(request_expiry_ms === undefined ? {} : { requestExpiryMs: request_expiry_ms }),
    now: () => waits.reduce((time, wait) => time + wait, now_ms ?? 1767225600000),
    random: () => 0.5,
    sleep: async (ms) => waits.push(ms),
    newIdempotencyKey: () => `key-${++keys}`,
  });

  async function runStep(step: Step): Promise<object> {
    const { operation, show = [] } = step;
    const shown = (body: unknown) => show.map((pointer) => valueAt(body, pointer));
    const { params, query, body } = step;
    const input = {
      ...(params === undefined ? {} : { path: params }),
      ...(query === undefined ? {} : { query }),
      ...(body === undefined ? {} : { body }),
    };
    // This client has no requests whose headers a caller could set.
    const idempotencyKey = step.idempotency_key ?? step.idempotency_header;
    const options: CallOptions = {
      ...(step.signers === undefined ? {} : { signers: named(step.signers) }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(step.request_expiry_ms === undefined ? {} : { requestExpiryMs: step.request_expiry_ms }),
    };
    switch (step.do) {
      case 'list': {
        const items: unknown[] = [];
        for await (const item of client.list(operation as 'listWallets', input as object, options)) {
          items.push(shown(item));
          if (items.length === step.take) break;
        }
        return { items };
      }
      case 'prepare': {
        const prepared = await client.prepare(operation as 'listWallets', input as object, options);
        const { 'content-type': _, ...headers } = prepared.headers;
        return { payload: prepared.payload, signatures: prepared.signatures, headers };
      }
      case 'userSigner': {
        const { jwt, as } = step as unknown as { jwt: string; as: string };
        const { signer, expiresAt } = await userSigner(client, jwt);
        signers[as] = signer;
        return { expires_at: expiresAt };
      }
      case 'import': {
        type Written = { private_key: string; private_key_text?: unknown; address: string };
        const { private_key, private_key_text, ...rest } = (step as unknown as { wallet: Written }).wallet;
        // A caller without types could pass text.
        const privateKey = (private_key_text ?? Buffer.from(private_key, 'hex')) as Uint8Array;
        const imported = await importPrivateKey(client, { chain_type: 'ethereum', ...rest, privateKey });
        return { status: 200, shown: shown(imported) };
      }
      case 'export':
        return {
          secret: await exportPrivateKey(
            client,
            (step as unknown as { wallet_id: string }).wallet_id,
            options,
          ),
        };
      case 'keySigner': {
        const { sign } = keySigner((step as unknown as { key: string }).key);
        return { signature: await sign(Buffer.from('{}')) };
      }
      case 'verify':
        return verify(step as unknown as VerifyStep);
      default: {
        const call = (client as unknown as Record<string, AnyOperation>)[operation]!;
        for (let times = 1; times < (step.times ?? 1); times += 1) await call(input, options);
        const answer = await call(input, options);
        save(step.save, answer);
        return { status: answer === undefined ? 204 : 200, shown: shown(answer) };
      }
    }
  }

  const outcomes: object[] = [];
  for (const step of steps) {
    outcomes.push(
      await runStep(fill(step)).then(
        (ok) => ({ ok }),
        (error) => ({ error: describe(error) }),
      ),
    );
  }
  if (file.offline || arrived === false) return { case: name, steps: outcomes, waits };
  const { data } = (await control('GET /_sandbox/requests?limit=1000')) as {
    data: { operation: string; status: number }[];
  };
  return {
    case: name,
    steps: outcomes,
    waits,
    arrived: data.map((each) => `${each.operation} ${each.status}`),
  };
}

function verify({
  secret,
  id,
  body,
  age_seconds = 0,
  signed_body = body,
  signed_with = [secret],
  headers,
}: VerifyStep) {
  const time = String(Math.floor(Date.now() / 1000) - age_seconds);
  const sign = (each: string) =>
    createHmac('sha256', Buffer.from(each.replace('whsec_', ''), 'base64'))
      .update(`${id}.${time}.${signed_body}`)
      .digest('base64');
  const made: Record<string, string | null> = {
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': signed_with.map((each) => `v1,${sign(each)}`).join(' '),
    ...headers,
  };
  const sent = Object.entries(made).filter((entry): entry is [string, string] => entry[1] !== null);
  const verified = verifyWebhook(secret, Object.fromEntries(sent), body);
  return { id: verified.id, type: verified.type };
}

function describe(error: Error): object {
  if (error instanceof ApiError) {
    const { status, code, message, requestId } = error;
    const text = String(error).replace('ApiError: ', '').replace(`(request ${requestId})`, '(request *)');
    return { kind: 'api', status, code, message, text };
  }
  if (error instanceof ConnectionError) return { kind: error.isTimeout ? 'timeout' : 'connection' };
  if (error instanceof UnexpectedAnswerError)
    return { kind: 'answer', text: error.message.replace(error.url, '*') };
  if (error instanceof WebhookVerificationError) return { kind: 'webhook' };
  if (error instanceof TypeError) return { kind: 'argument' };
  throw error;
}

for (const each of file.cases) {
  if (only === undefined || each.name === only)
    process.stdout.write(`${canonicalize(await runCase(each))}\n`);
}
