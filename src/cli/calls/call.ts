import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { asStarted } from '../../config/client.ts';
import type { CallHeaders } from '../../tools/client/call-operation.ts';
import type { SandboxPlace } from '../../tools/client/sandbox-address.ts';
import type { ReceivedResponse, SandboxClient, SentRequest } from '../../tools/client/sandbox-client.ts';
import { readDurationMs } from '../control/clock.ts';
import {
  addSandboxClientOptions,
  collect,
  collectNames,
  invalidOption,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { quote } from '../shell/terminal.ts';

interface CallFlags extends SandboxClientFlags {
  sign?: string[];
  key?: string[];
  body?: string;
  header?: string[];
  user?: string;
  appId?: string;
  appSecret?: string;
  prefix?: string;
  idempotencyKey?: string;
  expiresIn?: string;
  include?: boolean;
  curl?: boolean;
}

const examples = `
Values of path parameters come first, or as name=value. name=value sets a text,
name:=json any other value; params.message leads to a nested field, and
rules.0.name to one in a list. Operations without a body take them as query
parameters. Operations of the control plane (getClock, fundAddress, …) can be
called as well.

Prints the body. Exit code: 0 for 2xx, 1 for a refusal, whose hint is printed
to standard error.

Examples:
  $ custos call createWallet chain_type=ethereum
  $ custos call walletRpc ext_wal_alice --sign alice \\
      method=personal_sign params.message=Hello params.encoding=utf-8
  $ custos call listWallets limit=5 chain_type=solana
  $ custos call createPolicy --body policy.json name=Draft --curl`;

/** Returns the command `custos call`, which calls any operation of a running sandbox, signed. */
export function callCommand(): Command {
  return addSandboxClientOptions(
    new Command('call')
      .description('call an operation, signed as its owners')
      .argument('<operation>', 'an operationId, such as walletRpc')
      .argument('[input...]', 'path parameters, then fields: name=text or name:=json')
      .option('--sign <names>', 'sign as seeded users: alice, bob, carol; repeatable', collectNames)
      .option('--key <file>', 'sign with this P-256 private key; repeatable', collect)
      .option('--body <file>', 'JSON to start from; - for standard input')
      .option('-H, --header <name: value>', 'another header; repeatable', collect)
      .option(
        '--user <user>',
        'sign in as this user (see `custos token`) instead of the app secret; or a token',
      )
      .option('--app-id <id>', 'id of the app (default: that of the sandbox)')
      .option('--app-secret <secret>', 'secret of the app (default: that of the sandbox)')
      .option('--prefix <word>', 'as in `custos sandbox --prefix` (default: that of the sandbox)')
      .option('--idempotency-key <key>', 'respond to a repetition with the first response')
      .option('--expires-in <duration>', 'refuse the request after this time: 500ms, 5s, 2m')
      .option('-i, --include', 'print the status and the headers, too')
      .option('--curl', 'print the request as a curl command instead of sending it'),
  )
    .addHelpText('after', examples)
    .action((id: string, texts: string[], flags: CallFlags) =>
      withSandbox(flags, async (client) => {
        const place = { ...client.place(), ...ownPlace(flags) };
        const request = await requestOf(client, { id, texts, flags, place });
        if (flags.curl === true) console.log(curlOf(place, request));
        else printResponse(await client.send(request), flags);
      }),
    );
}

function ownPlace({ appId, appSecret, prefix }: CallFlags): Partial<SandboxPlace> {
  return {
    ...(appId === undefined ? {} : { appId }),
    ...(appSecret === undefined ? {} : { appSecret }),
    ...(prefix === undefined ? {} : { prefix }),
  };
}

interface Called {
  readonly id: string;
  readonly texts: readonly string[];
  readonly flags: CallFlags;
  readonly place: SandboxPlace;
}

async function requestOf(client: SandboxClient, { id, texts, flags, place }: Called): Promise<SentRequest> {
  const [{ findOperation }, { readCallInput }, { buildRequest }, keys] = await Promise.all([
    import('../../tools/client/call-operation.ts'),
    import('../../tools/client/call-operation.ts'),
    import('../../tools/client/call-operation.ts'),
    import('../../tools/client/call-operation.ts'),
  ]);
  const operation = findOperation(id);
  if (flags.body !== undefined && !operation.hasBody) throw invalidOption(`--body: \`${id}\` has no body`);
  keys.requireAccepted(operation, { userToken: flags.user });
  const input = readCallInput(operation, texts, flags.body === undefined ? undefined : readBody(flags.body));
  const headers: CallHeaders = {
    signers: [
      ...(flags.sign ?? []).map((name) => keys.seededKey(name)),
      ...(flags.key ?? []).map((file) => keys.keyFromFile(file)),
    ],
    userToken: flags.user === undefined ? undefined : await userTokenOf(client, flags.user),
    idempotencyKey: flags.idempotencyKey,
    expiryMs: flags.expiresIn === undefined ? undefined : await expiryOf(client, flags.expiresIn),
    others: Object.fromEntries((flags.header ?? []).map(readHeader)),
  };
  return buildRequest(place, operation, { input, headers });
}

const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Returns the given access token, or creates a session for a user and returns its token. */
async function userTokenOf(client: SandboxClient, user: string): Promise<string> {
  if (TOKEN.test(user)) return user;
  const { signIn } = await import('../../tools/client/world.ts');
  return (await signIn(client, user)).access_token;
}

/** Returns the expiry time by the sandbox's clock, which may be frozen. */
async function expiryOf(client: SandboxClient, duration: string): Promise<number> {
  const durationMs = readDurationMs('--expires-in', duration);
  const { now_ms: nowMs } = await client.call<{ now_ms: number }>('GET', '/clock');
  return nowMs + durationMs;
}

function readBody(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch {
    throw invalidOption(`--body: \`${file}\` cannot be read`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidOption(`--body: expected JSON in \`${file}\`: ${(error as Error).message}`);
  }
}

function readHeader(text: string): [string, string] {
  const [, name, value] = /^([\w-]+):(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw invalidOption(`--header: expected \`name: value\`, got \`${text}\``);
  return [name.toLowerCase(), value.trimStart()];
}

function printResponse({ status, statusText, headers, text }: ReceivedResponse, flags: CallFlags): void {
  if (flags.include === true) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`);
    console.log([`${status} ${statusText}`, ...lines, ''].join('\n'));
  }
  const body = parseJson(text);
  if (text !== '')
    console.log(body === undefined ? text : JSON.stringify(body, undefined, flags.json ? 0 : 2));
  if (status >= 200 && status < 300) return;
  const { data } = (body ?? {}) as { data?: { hint?: unknown } };
  if (typeof data?.hint === 'string') console.error(`custos: ${asStarted(data.hint)}`);
  const id = headers['x-request-id'];
  if (typeof id === 'string') console.error(`custos: ${asStarted(`\`custos why ${id}\``)} explains it`);
  process.exitCode = 1;
}

/** Parses JSON. Returns undefined for any other text, such as a CSV statement. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the request as a curl command for a POSIX shell. */
function curlOf({ url, caFile }: SandboxPlace, { method, target, headers, bodyText }: SentRequest): string {
  const parts = [
    `curl${caFile === undefined ? '' : ` --cacert ${quote(caFile)}`} -X ${method} ${quote(new URL(target, url).href)}`,
    ...Object.entries(headers).map(([name, value]) => `  -H ${quote(`${name}: ${value}`)}`),
    ...(bodyText === undefined ? [] : [`  -d ${quote(bodyText)}`]),
  ];
  return parts.join(' \\\n');
}
