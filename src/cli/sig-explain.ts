import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { explainSignature, payloadVariants } from '../engine/authorization/explain-signature.ts';
import { canonicalJson, NotCanonicalizableError } from '../engine/crypto/encoding.ts';
import { InvalidPublicKeyError, parseP256PublicKey } from '../engine/crypto/p256.ts';

/** The result of `custos sig explain`, printed as text, or as JSON with `--json`. */
export interface SignatureReport {
  /** Whether the signature over the canonical payload is valid for one of the keys. */
  readonly valid: boolean;
  readonly canonical_payload: string;
  /** Whether the given payload was already canonical. */
  readonly was_canonical: boolean;
  readonly public_key?: string;
  readonly encoding: string;
  readonly differs_in?: string;
  readonly reason: string;
}

interface ExplainFlags {
  payload: string;
  signature: string;
  key: string[];
  json?: boolean;
}

const examples = `
The payload is the signed JSON object: version, method, url, body, headers. A
value that starts with @ is the name of a file. Exit code: 0 when the signature
is valid, 1 when it is not.

Example:
  $ custos sig explain --payload @payload.json --signature MEUCIQ… \\
      --key @public.pem`;

/** Returns the command `custos sig …`, which inspects authorization signatures without a server. */
export function sigCommand(): Command {
  const sig = new Command('sig').description('inspect authorization signatures without a server');
  sig.addCommand(
    new Command('explain')
      .description('check whether a signature covers a payload, and if not, which text it covers')
      .requiredOption('--payload <json>', 'the payload, or @file')
      .requiredOption('--signature <base64>', 'one signature from the header, or @file')
      .requiredOption('--key <key...>', 'public keys that may have signed: base64 SPKI, PEM, or @file')
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action((flags: ExplainFlags, command: Command) => {
        const report = explainOrFail(flags, command);
        console.log(flags.json === true ? JSON.stringify(report, null, 2) : textOf(report));
        if (!report.valid) process.exitCode = 1;
      }),
  );
  return sig;
}

/**
 * Explains why a signature over a payload is valid or not.
 *
 * @throws SyntaxError for a payload that is not JSON; NotCanonicalizableError; InvalidPublicKeyError.
 */
export function reportSignature({
  payload,
  signature,
  keys,
}: {
  readonly payload: string;
  readonly signature: string;
  readonly keys: readonly string[];
}): SignatureReport {
  const canonical = canonicalJson(JSON.parse(payload));
  const spkis = keys.map(parseP256PublicKey);
  const explained = explainSignature({ signature: signature.trim(), payloads: [canonical], keys: spkis });
  const common = {
    canonical_payload: canonical,
    was_canonical: payload === canonical,
    encoding: explained.encoding,
  };
  if (explained.key !== undefined) {
    return {
      valid: true,
      ...common,
      public_key: explained.key,
      reason: 'the signature covers the canonical payload',
    };
  }
  if (explained.nearMiss !== undefined) {
    const { key, part, mistake } = explained.nearMiss;
    return { valid: false, ...common, public_key: key, differs_in: part, reason: mistake };
  }
  if (payload !== canonical) {
    const asGiven = explainSignature({ signature: signature.trim(), payloads: [payload], keys: spkis });
    if (asGiven.key !== undefined) {
      const reason = 'the payload was signed as given, not in canonical form';
      return { valid: false, ...common, public_key: asGiven.key, differs_in: 'serialisation', reason };
    }
  }
  return { valid: false, ...common, reason: reasonOf(explained.encoding, canonical) };
}

function reasonOf(encoding: string, canonical: string): string {
  if (encoding !== 'der' && encoding !== 'raw') return `the signature is ${encoding}`;
  const tried = payloadVariants(canonical).length;
  return `the signature verifies under none of the keys, neither for this payload nor for ${tried} common mistakes`;
}

function explainOrFail(flags: ExplainFlags, command: Command): SignatureReport {
  try {
    return reportSignature({
      payload: contentOf(flags.payload),
      signature: contentOf(flags.signature),
      keys: flags.key.map(contentOf),
    });
  } catch (error) {
    if (error instanceof SyntaxError) return command.error(`--payload: expected JSON: ${error.message}`);
    if (error instanceof NotCanonicalizableError) return command.error(`--payload: ${error.message}`);
    if (error instanceof InvalidPublicKeyError) return command.error(`--key: ${error.message}`);
    if (error instanceof UnreadableFileError) return command.error(error.message);
    throw error;
  }
}

/** Thrown when a file that an option names cannot be read. The message is for the user. */
class UnreadableFileError extends Error {}

function contentOf(value: string): string {
  if (!value.startsWith('@')) return value;
  const path = value.slice(1);
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new UnreadableFileError(`\`${path}\` cannot be read`, { cause });
  }
}

function textOf(report: SignatureReport): string {
  const lines = [
    report.valid ? 'valid' : `not valid: ${report.reason}`,
    `  signed by   ${report.public_key ?? 'none of the keys'}`,
    `  encoding    ${report.encoding}`,
    ...(report.differs_in === undefined ? [] : [`  differs in  ${report.differs_in}`]),
    ...(report.was_canonical ? [] : ['  the payload was not given in canonical form (RFC 8785)']),
    'Text to sign:',
    report.canonical_payload,
  ];
  return lines.join('\n');
}
