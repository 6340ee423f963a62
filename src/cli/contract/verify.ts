import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import type { VerifyOptions } from '../../compose/verify.ts';
import { packageRoot } from '../../config/package-root.ts';
import { UnmeasurableError } from '../../config/start-error.ts';
import { listRunningSandboxes } from '../../tools/client/running-sandboxes.ts';
import { collect, invalidOption, readHttpUrl } from '../sandbox-options.ts';
import { removeStaleReadyFile, stopSignal, writeReadyFile } from '../serve-until-stopped.ts';
import { readReportTargets, writeReports } from './report-options.ts';

interface VerifyFlags {
  target: string;
  targetCa?: string;
  rewriteHost?: boolean;
  host: string;
  port: string;
  record?: string;
  againstSandbox?: string;
  sandboxCa?: string;
  readyFile?: string;
  format?: string[];
}

const formats = ['text', 'json', 'junit', 'sarif'] as const;

const examples = `
Examples:
  $ custos verify --target https://staging.example.com --rewrite-host
  $ custos verify --target https://127.0.0.1:4010
  $ custos verify --target https://staging.example.com \\
      --against-sandbox https://127.0.0.1:4010

Send the requests of your tests to the proxy, then stop it with Ctrl-C or
SIGTERM: it writes the report. Clients that sign requests sign the URL of the
proxy; the target must know that URL (\`--public-url\`, CUSTOS_PUBLIC_URLS).

Exit codes: 0 the contract was kept, 1 it was not, 2 invalid usage,
3 no request was judged.`;

/**
 * Returns the command `custos verify`, which runs a proxy that compares the messages of any server with the API
 * document.
 */
export function verifyCommand(): Command {
  return new Command('verify')
    .description(
      'compare requests to a server, and its responses, with the contract, as a proxy in front of it',
    )
    .requiredOption('--target <url>', 'the server')
    .option(
      '--target-ca <file>',
      'certificate authority of the server (default: that of a sandbox of this machine, or Node.js)',
    )
    .option('--rewrite-host', 'send the host of the target instead of the one that the client sent')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 selects a free one', '4020')
    .option('--record <file>', 'write the exchanges as HTTP Archive, without secrets')
    .option('--against-sandbox <url>', 'send each request to this sandbox as well, and compare the answers')
    .option('--sandbox-ca <file>', 'certificate authority of the sandbox (default: the same)')
    .option('--ready-file <path>', 'write the URL and the certificate authority of the proxy to this file')
    .option('--format <format[=file]>', `${formats.join(', ')}; repeatable (default: text)`, collect)
    .addHelpText('after', examples)
    .action(verify);
}

async function verify(flags: VerifyFlags): Promise<void> {
  const targets = readReportTargets(flags.format ?? ['text'], formats);
  const document = JSON.parse(readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8'));
  const options = { ...readOptions(flags), document };
  const stop = stopSignal();
  if (flags.readyFile !== undefined) removeStaleReadyFile(flags.readyFile);
  const [{ startVerifier }, { renderVerification }] = await Promise.all([
    import('../../compose/verify.ts'),
    import('../../tools/verify/verify-report.ts'),
  ]);
  const verifier = await startVerifier(options);
  console.error(
    `custos: verifying ${flags.target} at ${verifier.url}, certificate authority ${verifier.caFile}`,
  );
  if (flags.readyFile !== undefined) {
    const ready = { base_url: verifier.url, ca_file: verifier.caFile, pid: process.pid };
    writeReadyFile(flags.readyFile, ready);
  }
  await new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    stop.addEventListener('abort', () => resolve());
  });
  await verifier.close();
  if (flags.record !== undefined) writeFileSync(flags.record, JSON.stringify(await verifier.archive()));
  const verification = verifier.verification();
  writeReports(targets, (format) => renderVerification(format, verification));
  if (verification.findings.some(({ severity }) => severity === 'error')) process.exitCode = 1;
  else if (verification.judged === 0) {
    throw new UnmeasurableError('expected requests to operations of the contract, saw none');
  }
}

function readOptions(flags: VerifyFlags): Omit<VerifyOptions, 'document'> {
  const { host, rewriteHost, againstSandbox } = flags;
  if (!/^\d{1,5}$/.test(flags.port) || Number(flags.port) > 65_535) {
    throw invalidOption(`--port: expected a port from 0 to 65535, got \`${flags.port}\``);
  }
  const url = readHttpUrl('--target', flags.target);
  const sandboxUrl =
    againstSandbox === undefined ? undefined : readHttpUrl('--against-sandbox', againstSandbox);
  const ca = readPem('--target-ca', flags.targetCa ?? authorityOf(url));
  const sandboxCa = readPem('--sandbox-ca', flags.sandboxCa ?? authorityOf(sandboxUrl));
  return {
    ...{ host, port: Number(flags.port) },
    target: { url, ca, host: rewriteHost === true ? url.host : undefined },
    sandbox: sandboxUrl === undefined ? undefined : { url: sandboxUrl, ca: sandboxCa, host: undefined },
  };
}

/** Returns the certificate file of the sandbox that runs on this machine under the URL's origin, if there is one. */
function authorityOf(url: URL | undefined): string | undefined {
  return listRunningSandboxes().find(({ base_url: running }) => running === url?.origin)?.ca_file;
}

function readPem(option: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw invalidOption(`${option}: \`${file}\` cannot be read`);
  }
}
