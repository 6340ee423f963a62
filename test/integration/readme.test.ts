import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { recoverMessageAddress } from 'viem';
import { expect, test } from 'vitest';
import { runCustos, type ServingCustos, serveCustos, temporaryFolder } from '../support/run-custos.ts';

// What the README tells a newcomer to type is run here, with the address and folder of this run put in.
const root = join(import.meta.dirname, '..', '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const shell = promisify(execFile);

/** The code block below `<!-- test: name -->`. */
function block(name: string): string {
  const [, text] = new RegExp(`<!-- test: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``).exec(readme) ?? [];
  if (text === undefined) throw new Error(`the README has no block \`${name}\``);
  return text;
}

/** The flags of the README's start command. */
function startFlags(): string[] {
  const [, flags = ''] = /npm start -- (.*) --data \.custos\n/.exec(readme) ?? [];
  return flags.split(' ');
}

function serveAsToldIn(folder: string): Promise<ServingCustos> {
  return serveCustos(['sandbox', ...startFlags(), '--data', folder]);
}

test('the start command and the curl answer what the README shows', async () => {
  const folder = temporaryFolder();
  await using custos = await serveAsToldIn(folder);
  const command = block('curl')
    .replaceAll('https://127.0.0.1:4010', custos.ready.base_url)
    .replaceAll('.custos/', `${folder}/`);
  const { stdout } = await shell('sh', ['-c', command.replace('curl', 'curl --silent')]);
  expect(JSON.parse(stdout)).toEqual(JSON.parse(block('output')));
});

test("the signing example signs for Alice's wallet", async () => {
  const folder = temporaryFolder();
  await using custos = await serveAsToldIn(folder);
  const script = join(root, `readme-sign-${custos.ready.pid}.mjs`);
  writeFileSync(script, block('sign').replaceAll('https://127.0.0.1:4010', custos.ready.base_url));
  try {
    const { stdout } = await shell(process.execPath, [script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: custos.ready.ca_file, NO_COLOR: '1' },
    });
    const [, signature] = /signature: '(0x[0-9a-f]{130})'/.exec(stdout) ?? [];
    const { body: alice } = await custos.call<{ address: string }>('GET', '/v1/wallets/ext_wal_alice');
    const signer = await recoverMessageAddress({ message: 'Hello', signature: signature as `0x${string}` });
    expect(signer).toBe(alice.address);
  } finally {
    rmSync(script);
  }
});

test('every npm script and every custos command of the README exists', async () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = [...readme.matchAll(/npm run ([a-z:-]+)/g)].map(([, name]) => name as string);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
  const commands = [...readme.matchAll(/`npx custos ([a-z-]+(?: [a-z-]+)?(?:\\\|[a-z-]+)*)/g)];
  expect(commands.length).toBeGreaterThan(4);
  for (const [, text = ''] of commands) {
    const [group = '', verbs = ''] = text.split(' ');
    for (const verb of verbs.split('\\|')) {
      const { code, stderr } = await runCustos([group, ...(verb === '' ? [] : [verb]), '--help']);
      expect([text, verb, code, stderr]).toEqual([text, verb, 0, '']);
    }
  }
});
