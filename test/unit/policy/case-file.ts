import { readdirSync, readFileSync } from 'node:fs';
import { parseAbi, parseAbiItem } from 'viem';
import { parse } from 'yaml';
import type {
  ActionUnit,
  PolicyAction,
  SolanaAccount,
  SuiCommand,
} from '../../../src/engine/policy/action.ts';
import type { RuleInput } from '../../../src/engine/policy/compile.ts';
import type { World } from './oracle.ts';

const folder = new URL('./cases/', import.meta.url);

/** A policy, a request and the expected decision, as text: see cases/README.md. */
export interface PolicyCase {
  readonly name: string;
  readonly chain: string;
  readonly rules: readonly RuleInput[];
  readonly action: PolicyAction;
  readonly world: World;
  readonly decision: 'allowed' | 'denied';
  /** The number of the deciding rule, from 1; undefined if not stated. */
  readonly by: number | undefined;
  /** The observed value of the first condition of the first rule; undefined if not stated. */
  readonly sees: string | undefined;
}

interface Words {
  readonly source: string;
  readonly chain: string;
  readonly method: string;
  readonly abi?: readonly string[];
  readonly abi_json?: readonly unknown[];
  readonly typed_data?: RuleInput['conditions'][number]['typed_data'];
  readonly sets?: Readonly<Record<string, readonly string[]>>;
  readonly totals?: Readonly<Record<string, bigint | 'unreadable'>>;
  readonly time?: string;
}

interface FileWords extends Words {
  readonly cases?: readonly CaseWords[];
  readonly borders?: readonly BorderWords[];
}

interface CaseWords extends Partial<Words> {
  readonly case: string;
  readonly policy: readonly string[];
  readonly request: unknown;
  readonly decision: 'allowed' | 'denied';
  readonly by?: bigint;
  readonly sees?: string;
}

/**
 * Besides `field` and `request`, each key is an operator with its value, and lists the observed values for which it
 * holds.
 */
interface BorderWords extends Partial<Words> {
  readonly field: string;
  readonly observed: readonly unknown[];
  readonly request: unknown;
  readonly holds: Readonly<Record<string, readonly ('yes' | 'no')[]>>;
}

export const caseFiles: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml') && name !== 'calldata.yaml')
  .sort();

/** Calldata encoded by viem, by name: cases/calldata.yaml, printed by make-calldata.ts. */
export const calldataText: string = readFileSync(new URL('calldata.yaml', folder), 'utf8');
const calldata = parse(calldataText) as Readonly<Record<string, { readonly data: string }>>;

/** Every case of a file; a border table gives two for each of its cells: as an ALLOW, and as a DENY beside ALLOW all. */
export function readCaseFile(name: string): PolicyCase[] {
  const file = parse(readFileSync(new URL(name, folder), 'utf8'), {
    intAsBigInt: true,
    merge: true,
  }) as FileWords;
  return [
    ...(file.cases ?? []).map((words) => readCase(words.case, { ...file, ...words })),
    ...(file.borders ?? []).flatMap((words) => readBorders({ ...file, ...words })),
  ];
}

function readCase(name: string, words: Words & CaseWords): PolicyCase {
  return {
    name,
    chain: words.chain,
    rules: words.policy.map((text, index) => readRule(text, index, words)),
    action: { method: words.method, units: readUnits(words.request) },
    world: readWorld(words),
    decision: words.decision,
    by: words.by === undefined ? undefined : Number(words.by),
    sees: words.sees,
  };
}

function readBorders(words: Words & BorderWords): PolicyCase[] {
  return Object.entries(words.holds).flatMap(([comparison, answers]) => {
    if (answers.length !== words.observed.length)
      throw new Error(`${comparison}: an answer for each is needed`);
    return answers.flatMap((answer, index) => {
      const observed = words.observed[index];
      const request = fillIn(words.request, observed);
      const name = `${words.field} ${comparison} of ${String(observed)}`;
      const holds = answer === 'yes';
      if (!holds && answer !== 'no') throw new Error(`${comparison}: expected yes or no`);
      const condition = `if ${words.field} ${comparison}`;
      return [
        readCase(`ALLOW ${name}`, {
          ...words,
          case: name,
          policy: [`ALLOW ${condition}`],
          request,
          decision: holds ? 'allowed' : 'denied',
        }),
        readCase(`DENY ${name}`, {
          ...words,
          case: name,
          policy: [`DENY ${condition}`, 'ALLOW'],
          request,
          decision: holds ? 'denied' : 'allowed',
          by: holds ? 1n : 2n,
        }),
      ];
    });
  });
}

function fillIn(template: unknown, observed: unknown): unknown {
  if (template === '$observed') return observed;
  if (Array.isArray(template)) return template.map((item) => fillIn(item, observed));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fillIn(value, observed)]));
}

const OPERATORS = 'eq|neq|gt|gte|lt|lte|in|in_condition_set|contains|starts_with|ends_with';
const RULE = /^(ALLOW|DENY)(?: for (\S+))?(?: if (.+))?$/s;
const CONDITION = new RegExp(`^(?:(\\w+):)?(\\S+) (${OPERATORS}) (.+)$`, 's');
const BETWEEN = new RegExp(` and (?=\\S+ (?:${OPERATORS}) )`);

/** `ALLOW [for METHOD] [if [SOURCE:]FIELD OPERATOR VALUE [and …]]` */
function readRule(text: string, index: number, words: Words): RuleInput {
  const [, action, method = words.method, conditions] = RULE.exec(text) ?? [];
  if (action === undefined) throw new Error(`not a rule: ${text}`);
  return {
    id: `rule ${index + 1}`,
    name: text.slice(0, 50),
    method,
    action: action as 'ALLOW' | 'DENY',
    conditions:
      conditions === undefined ? [] : conditions.split(BETWEEN).map((part) => readCondition(part, words)),
  };
}

function readCondition(text: string, words: Words): RuleInput['conditions'][number] {
  const [, source = words.source, field, operator, value] = CONDITION.exec(text) ?? [];
  if (field === undefined || value === undefined) throw new Error(`not a condition: ${text}`);
  const abi = words.abi_json ?? (words.abi && readAbi(words.abi));
  return {
    field_source: source,
    field,
    operator: operator as RuleInput['conditions'][number]['operator'],
    value: operator === 'in_condition_set' ? setId(value) : readValue(value),
    ...(abi && (source === 'ethereum_calldata' || source === 'tron_trigger_smart_contract_data') && { abi }),
    ...(words.typed_data && source === 'ethereum_typed_data_message' && { typed_data: words.typed_data }),
  };
}

function readAbi(lines: readonly string[]): readonly unknown[] {
  return lines.length === 1 ? [parseAbiItem(lines[0] as never)] : parseAbi(lines as never);
}

/** A list in brackets, a quoted text if it starts or ends with blanks, or plain text. */
function readValue(text: string): string | string[] {
  if (text.startsWith('"')) return JSON.parse(text) as string;
  if (!text.startsWith('[')) return text;
  return text
    .slice(1, -1)
    .split(',')
    .map((item) => item.trim());
}

/** Sets have ids of 24 characters; the cases use names. */
const setId = (name: string): string => name.padEnd(24, '0');

function readWorld({ sets = {}, totals = {}, time = '2026-01-01T00:00:00Z' }: Words): World {
  return {
    nowMs: Date.parse(time),
    sets: Object.fromEntries(Object.entries(sets).map(([name, items]) => [setId(name), items])),
    totals,
  };
}

type UnitWords = Readonly<Record<string, unknown>>;

function readUnits(request: unknown): ActionUnit[] {
  if (!Array.isArray(request)) return [readUnit(request as UnitWords, 'request')];
  return (request as UnitWords[]).map((words, index) => readUnit(words, `part ${index}`));
}

const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replace(/^0x/, ''), 'hex'));
const json = (value: unknown): never =>
  JSON.parse(JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? Number(item) : item))) as never;
const wide = (value: unknown): bigint => BigInt(value as string);
const optionally = <T>(value: unknown, read: (value: unknown) => T): T | undefined =>
  value === undefined ? undefined : read(value);

function readUnit(words: UnitWords, label: string): ActionUnit {
  const [kind, content] = Object.entries(words)[0] ?? [];
  if (kind === undefined) return { label };
  if (Object.keys(words).length !== 1)
    throw new Error(`a part of a request is one thing, not ${Object.keys(words)}`);
  const readers: Readonly<Record<string, (content: never) => Partial<ActionUnit>>> = {
    undecodable: (undecodable: string) => ({ undecodable }),
    call: (call: UnitWords) => ({ ethereumCall: readCall(call) }),
    tempo_call: ({ tempo, ...call }: UnitWords) => ({
      ethereumCall: readCall(call),
      tempo: readTempo(tempo as UnitWords),
    }),
    typed_data: (typed: { primary_type: string }) => {
      const { primary_type: primaryType, ...rest } = json(typed) as NonNullable<ActionUnit['typedData']> & {
        primary_type: string;
      };
      return { typedData: { ...rest, primaryType } };
    },
    authorization: (contract: string) => ({ authorization7702: { contract } }),
    instruction: (instruction: UnitWords) => ({ solanaInstruction: readInstruction(instruction) }),
    tron: ({ type, data, ...fields }: UnitWords) => ({
      tronContract: {
        type: String(type),
        fields: fields as Record<string, bigint | string>,
        data: optionally(data, readCalldata),
      },
    }),
    xrpl: (transaction: unknown) => ({ xrplTransaction: json(transaction) }),
    sui: (commands: readonly (string | UnitWords)[]) => ({ suiCommands: commands.map(readSuiCommand) }),
    message: (text: string) => ({ messageBytes: new TextEncoder().encode(text) }),
    message_bytes: (hex: string) => ({ messageBytes: bytes(hex) }),
    body: (body: unknown) => ({ requestBody: json(body) }),
  };
  const read = readers[kind];
  if (read === undefined) throw new Error(`no part of a request is called ${kind}`);
  return { label, ...read(content as never) };
}

function readCall(call: UnitWords): NonNullable<ActionUnit['ethereumCall']> {
  return {
    to: call.to as string | undefined,
    value: wide(call.value ?? 0n),
    chainId: optionally(call.chain_id, wide),
    data: readCalldata(call.data ?? '0x'),
  };
}

/** Hex, or the name of an entry of calldata.yaml. */
function readCalldata(data: unknown): Uint8Array {
  const text = String(data);
  if (text.startsWith('0x')) return bytes(text);
  const entry = calldata[text];
  if (entry === undefined) throw new Error(`calldata.yaml has no ${text}`);
  return bytes(entry.data);
}

function readTempo(tempo: UnitWords): NonNullable<ActionUnit['tempo']> {
  return {
    feeToken: tempo.fee_token as string | undefined,
    hasFeePayerSignature: tempo.fee_payer_signature === true,
    nonceKey: optionally(tempo.nonce_key, wide),
    validBefore: optionally(tempo.valid_before, wide),
    validAfter: optionally(tempo.valid_after, wide),
  };
}

const BEHIND_TABLE = 'behind a lookup table';

function readAccount(value: unknown): SolanaAccount | bigint {
  if (typeof value === 'bigint') return value;
  return value === BEHIND_TABLE ? { behindLookupTable: true } : String(value);
}

function readInstruction({
  program,
  program_id,
  name,
  ...fields
}: UnitWords): NonNullable<ActionUnit['solanaInstruction']> {
  return {
    programId: readAccount(program_id) as SolanaAccount,
    program: program as 'system' | 'token' | 'other',
    name: name as string | undefined,
    fields: Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, readAccount(value)])),
  };
}

/** `SplitCoins`, `unknown`, or `TransferObjects: {recipient, amount}` with what is known of them. */
function readSuiCommand(command: string | UnitWords): SuiCommand {
  if (command === 'unknown') return { name: undefined };
  if (typeof command === 'string') return { name: command as 'SplitCoins' };
  const { recipient, amount } = command.TransferObjects as UnitWords;
  return {
    name: 'TransferObjects',
    recipient: recipient as string | undefined,
    amount: optionally(amount, wide),
  };
}
