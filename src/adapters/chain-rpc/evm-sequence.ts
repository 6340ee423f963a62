import { bytesTo0xHex } from '../../crypto/encoding.ts';
import type { EvmCall, SequenceSimulation, Simulation } from '../../ports/chains.ts';
import { list, quantity, record } from './answers.ts';
import { NodeError } from './endpoint.ts';
import { classifyRefusal } from './evm-refusals.ts';
import type { Nodes } from './nodes.ts';

// EIP-1474, and what nodes answer that know the method but do not serve it.
const NOT_SERVED = new Set([-32601, -32004]);

/**
 * Simulates calls one after the other with `eth_simulateV1`. Where the node lacks it, only the first call is simulated,
 * with `simulateOne`.
 */
export async function simulateSequence(
  nodes: Nodes,
  calls: readonly EvmCall[],
  simulateOne: (call: EvmCall) => Promise<Simulation>,
): Promise<SequenceSimulation> {
  const [only] = calls;
  if (only === undefined) return { succeeds: true, units: [] };
  const answer = calls.length === 1 ? undefined : await simulateAll(nodes, calls);
  if (answer !== undefined) return answer;
  const first = await simulateOne(only);
  if (!first.succeeds) return { ...first, index: 0 };
  return { succeeds: true, units: calls.map((_, index) => (index === 0 ? first.units : undefined)) };
}

/** Undefined when the node does not serve the method. */
async function simulateAll(nodes: Nodes, calls: readonly EvmCall[]): Promise<SequenceSimulation | undefined> {
  let blocks: readonly unknown[];
  try {
    const question = { blockStateCalls: [{ calls: calls.map(toRpcCall) }], validation: false };
    blocks = list('eth_simulateV1', await nodes.read('eth_simulateV1', question, 'latest'));
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    if (NOT_SERVED.has(error.code)) return undefined;
    // The node refuses the whole block, for example because the sender cannot pay the value of a call.
    return { succeeds: false, index: 0, ...classifyRefusal(error) };
  }
  const results = list('eth_simulateV1', record('eth_simulateV1', blocks[0]).calls);
  const units: bigint[] = [];
  for (const index of calls.keys()) {
    const result = record('eth_simulateV1', results[index]);
    if (quantity('eth_simulateV1', result.status) !== 1n) {
      return { succeeds: false, index, ...refusalOf(result.error) };
    }
    units.push(limitFor(quantity('eth_simulateV1', result.gasUsed)));
  }
  return { succeeds: true, units };
}

/**
 * The gas limit for the gas that a call used: refunds, at most a fifth of what was spent, are paid only after the
 * execution (EIP-3529), and each level of calls keeps back a 64th (EIP-150). Unused gas is not paid.
 */
function limitFor(gasUsed: bigint): bigint {
  return (gasUsed * 4n) / 3n;
}

function toRpcCall({ from, to, value, data }: EvmCall): object {
  return {
    from,
    ...(to === undefined ? {} : { to }),
    value: `0x${value.toString(16)}`,
    ...(data.length === 0 ? {} : { input: bytesTo0xHex(data) }),
  };
}

function refusalOf(error: unknown) {
  const { code, message, data } = record('eth_simulateV1', error ?? {});
  return classifyRefusal(new NodeError(Number(code ?? 3), String(message ?? 'execution reverted'), data));
}
