import type { ActionUnit, EthereumCall } from '../action.ts';
import type { ConditionSource } from '../condition-source.ts';
import { absent, type Observation, present, unreadable } from '../values.ts';

/** Methods that sign bytes which contain Ethereum calls. */
export const ETHEREUM_CALL_METHODS: readonly string[] = [
  'eth_sendTransaction',
  'eth_signTransaction',
  'eth_signUserOperation',
  'wallet_sendCalls',
];

/**
 * Reads from the unit's Ethereum call. Returns absent if there is no call, and unreadable if the bytes could not be
 * decoded.
 */
export function readCall(unit: ActionUnit, read: (call: EthereumCall) => Observation): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.ethereumCall === undefined ? absent('not an Ethereum call') : read(unit.ethereumCall);
}

export const ethereumTransaction: ConditionSource = {
  methods: ETHEREUM_CALL_METHODS,
  resolve({ field }, action) {
    // A contract creation can run any code, and a transaction without a chain id is valid on every chain. Leaving the
    // field out must not bypass a DENY rule on a recipient or a chain.
    const missing = action === 'DENY' ? unreadable : absent;
    switch (field) {
      case 'to':
        return {
          kind: 'evm_address',
          read: (unit) =>
            readCall(unit, ({ to }) => (to === undefined ? missing('a contract creation') : present(to))),
        };
      case 'value':
        return { kind: 'number', read: (unit) => readCall(unit, ({ value }) => present(value.toString())) };
      case 'chain_id':
        return {
          kind: 'number',
          read: (unit) =>
            readCall(unit, ({ chainId }) =>
              chainId === undefined ? missing('no chain id in the transaction') : present(chainId.toString()),
            ),
        };
      default:
        return undefined;
    }
  },
};
