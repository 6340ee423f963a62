import type { ConditionInput } from '../../../policy/source.ts';
import { callRequests, type EthereumCall, isEvmAddress } from './lint-ethereum-calls.ts';
import { tokenGrants } from './lint-ethereum-grants.ts';
import { boundaryNumbers, distinct, type Effect, namedValues, type TriedRequest } from './lint-requests.ts';
import { type TokenFunction, tokenFunctions } from './lint-token-calls.ts';

/** Stands for the tokens that no rule names. */
const SOME_TOKEN = '0x0000000000000000000000000000000000c0ffee';
/** How many values of each field are tried: their product bounds the work. */
const MOST = { tokens: 2, receivers: 3, amounts: 3 };

interface TokenSubject {
  readonly conditions: readonly ConditionInput[];
  readonly chainId: number;
  readonly receivers: readonly string[];
  readonly sender: string;
}

const isCalldata = ({ field_source: source }: ConditionInput): boolean => source === 'ethereum_calldata';

/** Transfers of tokens by the calldata that conditions name, and what gives the same tokens away. */
export function* tokenEffects({ conditions, chainId, receivers, sender }: TokenSubject): Generator<Effect> {
  if (!conditions.some(isCalldata)) return;
  const named = namedValues(conditions, isCalldata);
  const contracts = namedValues(conditions, ({ field }) => field === 'to').filter(isEvmAddress);
  const to = distinct([...receivers, ...named.filter(isEvmAddress)], MOST.receivers);
  // Addresses are hex as well.
  const amounts = boundaryNumbers(
    named.filter((value) => !isEvmAddress(value)),
    2n ** 256n,
  ).slice(0, MOST.amounts);
  for (const token of distinct([SOME_TOKEN, ...contracts], MOST.tokens)) {
    for (const receiver of to) {
      for (const amount of amounts) {
        yield* effectsOf({ to: token, value: 0n, chainId, sender }, { receiver, amount });
      }
    }
  }
}

function* effectsOf(
  call: EthereumCall,
  { receiver, amount }: { readonly receiver: string; readonly amount: bigint },
): Generator<Effect> {
  const terms = { owner: call.sender.toLowerCase(), to: receiver.toLowerCase(), amount };
  const functions = tokenFunctions({ ...terms, source: 'ethereum_calldata' });
  const byFunction = functions.map((each) => requestsOf(call, each));
  const grants = tokenGrants(call, terms);
  for (const [index, calls] of byFunction.slice(0, 2).entries()) {
    const siblings = byFunction.filter((_, other) => other !== index);
    yield {
      calls,
      others: [
        ...calls.map(({ method }, position) => ({
          kind: 'sibling_call' as const,
          of: method,
          requests: siblings.map((requests) => requests[position]!),
        })),
        { kind: 'sibling_call', requests: grants },
      ],
    };
  }
}

function requestsOf(call: EthereumCall, { data, marks }: TokenFunction): readonly TriedRequest[] {
  return callRequests({ ...call, data }, { marks, token: call.to });
}

/** Transfers of tokens in place of a payment: their calls have no value. */
export function tokenTransfers({ to, chainId, sender }: EthereumCall) {
  const [transfer] = tokenFunctions({
    ...{ owner: sender.toLowerCase(), to: to.toLowerCase(), amount: 1n },
    source: 'ethereum_calldata',
  });
  const requests = requestsOf({ to: SOME_TOKEN, value: 0n, chainId, sender }, transfer!);
  return requests.map((request) => ({
    kind: 'token_transfer' as const,
    of: request.method,
    requests: [request],
  }));
}
