import type { Operations } from '../src/generated/operations.ts';
import { ask } from './measure/ask.ts';
import type { LoadRequest } from './measure/load-order.ts';
import { postRequest } from './requests.ts';
import type { Address } from './servers/launch.ts';

type Policy = Operations['createPolicy']['body'];
type Rule = Policy['rules'][number];

const RULES = 20;
const CONDITIONS = 10;
const WALLETS = 50;

const abi = [
  {
    ...{ type: 'function', name: 'transfer', stateMutability: 'nonpayable', outputs: [] },
    inputs: [
      { type: 'address', name: 'to' },
      { type: 'uint256', name: 'value' },
    ],
  },
] as const;
const token = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
/** `transfer(0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0, 25000000)` */
const data = `0xa9059cbb${'6fac4d18c912343bf86fa7049364dd4e424ab9c0'.padStart(64, '0')}${(25_000_000).toString(16).padStart(64, '0')}`;

/** A token payment, the most common request of a treasury. */
const transaction = {
  type: 2,
  chain_id: 8453,
  to: token,
  value: '0x0',
  data,
  gas_limit: 90_000,
  max_fee_per_gas: 2_000_000_000,
  max_priority_fee_per_gas: 1_000_000,
};

/** As forwarded by a proxy that terminates TLS; ignored by servers without one. */
function post(address: Address, path: string, body: unknown): LoadRequest {
  const request = postRequest(address, path, body);
  return { ...request, headers: { ...request.headers, 'x-forwarded-proto': 'https' } };
}

function addressOf(number: number): string {
  return `0x${number.toString(16).padStart(40, '0')}`;
}

/** Ten conditions. Only in the last rule do all of them hold: the others expect another recipient. */
function ruleFor(number: number): Rule {
  const of = (field_source: string, field: string, operator: string, value: string | string[]) => ({
    field_source,
    field,
    operator,
    value,
  });
  const isLast = number === RULES - 1;
  const calldata = (field: string, operator: string, value: string) => ({
    ...of('ethereum_calldata', field, operator, value),
    abi,
  });
  const conditions = [
    of('ethereum_transaction', 'to', 'eq', isLast ? token : addressOf(number + 1)),
    of('ethereum_transaction', 'to', 'in', [
      token,
      ...Array.from({ length: 20 }, (_, at) => addressOf(at + 1)),
    ]),
    of('ethereum_transaction', 'value', 'lte', '1000000000000000000'),
    of('ethereum_transaction', 'value', 'gte', '0'),
    of('ethereum_transaction', 'chain_id', 'in', ['1', '10', '8453', '42161']),
    of('ethereum_transaction', 'chain_id', 'neq', '137'),
    calldata('function_name', 'eq', 'transfer'),
    calldata('transfer.value', 'lte', '100000000'),
    calldata('transfer.to', 'neq', addressOf(0)),
    of('system', 'current_unix_timestamp', 'gt', '0'),
  ];
  return {
    name: `Payments ${number}`,
    method: 'eth_signTransaction',
    action: 'ALLOW',
    conditions: conditions as unknown as Rule['conditions'],
  };
}

/** Twenty rules of ten conditions; only the last one allows. */
const largePolicy: Policy = {
  version: '1.0',
  name: 'Twenty rules',
  chain_type: 'ethereum',
  rules: Array.from({ length: RULES }, (_, number) => ruleFor(number)),
};
if (largePolicy.rules.some(({ conditions }) => conditions.length !== CONDITIONS))
  throw new Error(`the policy must have rules of ${CONDITIONS} conditions`);

/** Allows payments up to a total that is never reached. */
function cappedPolicy(aggregationId: string): Policy {
  const condition = {
    field_source: 'reference',
    field: `aggregation.${aggregationId}`,
    operator: 'lte',
    value: String(10n ** 30n),
  };
  const rule = { ...ruleFor(0), name: 'Below the cap', conditions: [condition] };
  return { ...largePolicy, name: 'Capped', rules: [rule as unknown as Rule] };
}

async function walletsUnder(address: Address, policy: Policy | undefined, count: number): Promise<string[]> {
  const policy_ids =
    policy === undefined
      ? []
      : [(await ask<{ id: string }>(address, post(address, '/v1/policies', policy))).id];
  const body = { chain_type: 'ethereum', policy_ids };
  const ids: string[] = [];
  for (let made = 0; made < count; made += 1)
    ids.push((await ask<{ id: string }>(address, post(address, '/v1/wallets', body))).id);
  return ids;
}

const signing = (address: Address, ids: readonly string[]): LoadRequest[] =>
  ids.map((id, nonce) =>
    post(address, `/v1/wallets/${id}/rpc`, {
      method: 'eth_signTransaction',
      params: { transaction: { ...transaction, nonce } },
    }),
  );

/** `eth_signTransaction` on wallets without a policy, and on as many under twenty rules of ten conditions. */
export async function judgedRequests(address: Address) {
  return {
    free: signing(address, await walletsUnder(address, undefined, WALLETS)),
    judged: signing(address, await walletsUnder(address, largePolicy, WALLETS)),
  };
}

/**
 * The same under a cap on a running total, on one wallet and on many. Requests of one wallet wait for each other.
 * Created after the others, because an aggregation counts every wallet of its app.
 */
export async function cappedRequests(address: Address) {
  const aggregation = {
    name: 'Spent in an hour',
    method: 'eth_signTransaction',
    metric: { field_source: 'ethereum_calldata', field: 'transfer.value', function: 'sum', abi },
    window: { type: 'rolling', seconds: 3600 },
  };
  const { id } = await ask<{ id: string }>(address, post(address, '/v1/aggregations', aggregation));
  return {
    one: signing(address, await walletsUnder(address, cappedPolicy(id), 1)),
    many: signing(address, await walletsUnder(address, cappedPolicy(id), WALLETS)),
  };
}
