import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../support/run-custos.ts';
import { clientsFolder, languages } from './languages.ts';

// Values that the cases of clients/suite cannot have, because JSON or the types of another language lack them. The
// clients refuse them before they send anything, so no server listens at port 1.
const run = promisify(execFile);
const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const typescript = `
import { createClient } from 'CLIENTS/typescript/dist/client.js';
import { importPrivateKey } from 'CLIENTS/typescript/dist/keys.js';
import { verifyWebhook } from 'CLIENTS/typescript/dist/webhooks.js';

const options = { baseUrl: 'http://127.0.0.1:1', appId: 'app', appSecret: 'secret', retries: 0 };
const told = async (work) => console.log(await Promise.try(work).then(() => 'nothing', String));
await told(() => createClient({ ...options, retries: NaN }));
await told(() => createClient({ ...options, timeoutMs: Infinity }));
await told(() => createClient(options).listWallets({}, { timeoutMs: NaN }));
await told(() => importPrivateKey(createClient(options), { privateKey: '0x4c08' }));
await told(() => importPrivateKey(createClient(options), {}));
await told(() => verifyWebhook(undefined, new Headers(), '{}'));
await told(() => verifyWebhook('whsec_c2VjcmV0', new Headers({ 'webhook-id': '1' }), '{}'));
`;

const python = `
import pickle
import httpx
from custos import ApiError, Custos, UnexpectedAnswerError, WebhookError, verify_webhook
from custos.api.wallets import get_wallet

def told(work):
    try:
        print(work())
    except (ValueError, WebhookError) as error:
        print(type(error).__name__, error)

def client(**options):
    return Custos("app", "secret", base_url="http://127.0.0.1:1", **options)

told(lambda: client(retries=float("nan")))
told(lambda: client(timeout_s=float("inf")))
told(lambda: client().using(request_expiry_ms=float("nan")))
told(lambda: client().import_wallet("0x4c08", {}))
told(lambda: get_wallet.sync(None, client=client()))
told(lambda: verify_webhook(None, {}, b"{}"))
answer = httpx.Response(429, json={"error": "Slow down.", "code": "too_many_requests"}, headers={"retry-after": "7"})
for error in ApiError(answer), UnexpectedAnswerError(200, "text/html", "http://x"):
    copy = pickle.loads(pickle.dumps(error))
    print(type(copy).__name__, copy, getattr(copy, "headers", {}).get("retry-after"))
`;

const go = `
package main

import (
	"context"
	"errors"
	"fmt"

	custos "custos.example/client"
)

func main() {
	ctx := context.Background()
	client, err := custos.New(custos.Options{BaseURL: "http://127.0.0.1:1", AppID: "app", AppSecret: "secret", Retries: -1})
	fmt.Println(err)
	_, err = client.ArchiveWalletWithResponse(ctx, "id", custos.SignedBy(nil))
	fmt.Println(err)
	_, err = client.ImportWallet(ctx, nil, nil, nil)
	fmt.Println(err)
	_, err = client.ImportWallet(ctx, []byte{1}, nil, nil)
	fmt.Println(err != nil, errors.Is(err, custos.ErrArgument))
	_, err = custos.KeySigner("no key")
	fmt.Println(err)
}
`;

interface Program {
  readonly file: string;
  readonly text: string;
  readonly command: readonly [string, ...string[]];
  readonly prints: readonly string[];
}
const programs: Readonly<Record<string, Program>> = {
  typescript: {
    file: 'refusals.mjs',
    text: typescript,
    command: [process.execPath],
    prints: [
      'TypeError: retries must be a finite number',
      'TypeError: timeoutMs must be a finite number',
      'TypeError: timeoutMs must be a finite number',
      "TypeError: privateKey must be bytes, such as Buffer.from(hex, 'hex'), and not empty",
      "TypeError: privateKey must be bytes, such as Buffer.from(hex, 'hex'), and not empty",
      'WebhookVerificationError: Expected secret to be of type string',
      'WebhookVerificationError: Missing required headers',
    ],
  },
  python: {
    file: 'refusals.py',
    text: python,
    command: [join(clientsFolder, 'python/.venv/bin/python')],
    prints: [
      'ValueError retries must be a finite number',
      'ValueError timeout_s must be a finite number',
      'ValueError request_expiry_ms must be a finite number',
      'ValueError the secret must be bytes, such as bytes.fromhex(text), and not empty',
      'ValueError a parameter of the path /v1/wallets/None is empty, None or dots',
      'WebhookError the secret is empty',
      'ApiError 429 too_many_requests: Slow down 7',
      'UnexpectedAnswerError 200 text/html from http://x is not an answer of the API; is the base URL right? None',
    ],
  },
  go: {
    file: 'main.go',
    text: go,
    command: ['go', '-C', join(clientsFolder, 'go'), 'run'],
    prints: [
      '<nil>',
      'an argument is refused: a signer is nil',
      'an argument is refused: the secret is empty',
      'true false',
      'an argument is refused: the key is neither PEM nor base64',
    ],
  },
};

describe.each(languages)('$name', ({ name, missing, build }) => {
  test('refuses what cannot be meant', async () => {
    const reason = await missing();
    if (reason !== undefined) {
      process.stderr.write(`the refusals of clients/${name} were not run: ${reason}\n`);
      return;
    }
    await build();
    const { file, text, command, prints } = programs[name]!;
    const path = join(folder, file);
    writeFileSync(path, text.replaceAll('CLIENTS', clientsFolder));
    const [program, ...args] = command;
    // `NODE_OPTIONS` loads the ledger.
    const env = { ...process.env, NODE_OPTIONS: '' };
    const { stdout } = await run(program, [...args, path], { timeout: 300_000, env });
    expect(stdout.trimEnd().split('\n')).toEqual(prints);
  }, 600_000);
});
