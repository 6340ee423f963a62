import { decodeFunctionData, encodeFunctionData, isAddress, toFunctionSelector, toHex } from 'viem';
import type { ActionUnit, PolicyAction, PolicyFacts, SolanaAccount } from '../../../src/policy/action.ts';
import type { RuleInput } from '../../../src/policy/compile.ts';

/**
 * A second reading of src/policy/README.md, as plain as it can be and slow: it parses everything anew for every
 * question and shares only types with the engine. It judges whole requests, and supposes that the rules compile.
 */
export function oracleAllows(rules: readonly RuleInput[], action: PolicyAction, facts: PolicyFacts): boolean {
  const applying = rules.filter(({ method }) => method === action.method || method === '*');
  const unitIsAllowed = (unit: ActionUnit) => {
    const truths = (effect: string) =>
      applying.filter((rule) => rule.action === effect).map((rule) => truthOfRule(rule, unit, facts));
    return truths('DENY').every((truth) => truth === 'F') && truths('ALLOW').includes('T');
  };
  return action.units.length > 0 && action.units.every(unitIsAllowed);
}

type Truth = 'T' | 'F' | '?';
type Condition = RuleInput['conditions'][number];
/** What a condition sees: nothing (ABSENT), something that it cannot read, or values of a kind. */
type Seen = 'absent' | 'unreadable' | { kind: 'number' | 'decimal' | 'hex' | 'text'; values: unknown[] };

function truthOfRule(rule: RuleInput, unit: ActionUnit, facts: PolicyFacts): Truth {
  const truths = rule.conditions.map((condition): Truth => {
    const seen = look(condition, unit, facts);
    if (seen === 'unreadable') return '?';
    if (seen === 'absent' || seen.values.length === 0) return 'F';
    const holds = seen.values.map((value) => satisfies(condition, seen.kind, value, facts));
    return (rule.action === 'ALLOW' ? holds.every(Boolean) : holds.some(Boolean)) ? 'T' : 'F';
  });
  return truths.includes('F') ? 'F' : truths.includes('?') ? '?' : 'T';
}

/** A decimal as an integer count of 10^-200. */
function fixed(text: string): bigint {
  const [whole, fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(200, '0'));
}

function satisfies({ operator, value }: Condition, kind: string, seen: unknown, facts: PolicyFacts): boolean {
  const read = (text: string): string | bigint =>
    kind === 'number' ? BigInt(text) : kind === 'decimal' ? fixed(text) : kind === 'hex' ? text.toLowerCase() : text;
  const own = read(String(seen));
  if (operator === 'in_condition_set') {
    const texts = kind === 'number' ? [String(own), toHex(own as bigint)] : [String(seen)];
    return facts.inConditionSet(value as string, { texts, ignoreCase: kind === 'hex' }) === true;
  }
  if (operator === 'in') return (value as string[]).some((item) => read(item) === own);
  const given = read(value as string);
  switch (operator) {
    case 'eq': return own === given;
    case 'neq': return own !== given;
    case 'gt': return own > given;
    case 'gte': return own >= given;
    case 'lt': return own < given;
    case 'lte': return own <= given;
    case 'contains': return (own as string).includes(given as string);
    case 'starts_with': return (own as string).startsWith(given as string);
    case 'ends_with': return (own as string).endsWith(given as string);
  }
}

function one(kind: 'number' | 'decimal' | 'hex' | 'text', value: unknown): Seen {
  return value === undefined || value === null ? 'absent' : { kind, values: [value] };
}

function account(value: SolanaAccount | bigint | undefined): Seen {
  if (typeof value === 'bigint') return one('number', value);
  return typeof value === 'object' ? 'unreadable' : one('text', value);
}

function look(condition: Condition, unit: ActionUnit, facts: PolicyFacts): Seen {
  const { field_source: source, field } = condition;
  if (source === 'system') return one('number', Math.floor(facts.nowMs / 1000));
  if (source === 'reference') return one('number', facts.aggregation(field.slice('aggregation.'.length)));
  if (unit.undecodable !== undefined) return 'unreadable';
  switch (source) {
    case 'ethereum_transaction': {
      const call = unit.ethereumCall;
      if (field === 'to') return one('hex', call?.to);
      return one('number', field === 'value' ? call?.value : call?.chainId);
    }
    case 'ethereum_calldata': return lookAtCalldata(condition, unit.ethereumCall?.data);
    case 'tron_trigger_smart_contract_data': return lookAtCalldata(condition, unit.tronContract?.data);
    case 'ethereum_typed_data_domain': return lookAtDomain(field, unit);
    case 'ethereum_typed_data_message': return lookAtTypedMessage(condition, unit);
    case 'ethereum_7702_authorization': return one('hex', unit.authorization7702?.contract);
    case 'tempo_transaction': return lookAtTempo(field, unit);
    case 'solana_program_instruction': return account(unit.solanaInstruction?.programId);
    case 'solana_system_program_instruction': return lookAtInstruction('system', field, unit);
    case 'solana_token_program_instruction': return lookAtInstruction('token', field, unit);
    case 'tron_transaction': {
      const [type, name] = field.split('.') as [string, string];
      if (unit.tronContract?.type !== type) return 'absent';
      return one(name.endsWith('address') ? 'hex' : 'number', unit.tronContract.fields[name]);
    }
    case 'xrpl_transaction': return lookAtXrpl(field, unit.xrplTransaction);
    case 'sui_transaction_command':
    case 'sui_transfer_objects_command': return lookAtSui(field, unit);
    case 'action_request_body': {
      const found = walk(unit.requestBody, field.split('.'));
      if (found !== undefined && typeof found !== 'string') return 'unreadable';
      return one(field.endsWith('amount') ? 'decimal' : 'text', found);
    }
    case 'message': {
      if (unit.messageBytes === undefined) return 'absent';
      if (field === 'byte_length') return one('number', unit.messageBytes.length);
      const text = Buffer.from(unit.messageBytes).toString('utf8');
      return Buffer.from(text).equals(unit.messageBytes) ? one('text', text) : 'unreadable';
    }
    default: throw new Error(`the oracle does not know ${source}`);
  }
}
