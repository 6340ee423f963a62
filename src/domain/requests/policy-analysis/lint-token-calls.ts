import { bytesTo0xHex, hexToBytes } from '../../../crypto/encoding.ts';
import type { ConditionInput } from '../../../policy/source.ts';
import { contractAbi } from '../../../signing/ethereum/contracts/contract-abi.ts';
import { encodeTokenCall } from '../../../signing/ethereum/token-calls.ts';

/** A call of an ERC-20 token, also on Tron. Addresses are lower-case 0x hex. */
export interface TokenFunction {
  readonly name: string;
  /** 0x hex. */
  readonly data: string;
  /** Conditions that only calls of this function meet. */
  readonly marks: readonly ConditionInput[];
}

interface TokenTerms {
  readonly owner: string;
  readonly to: string;
  readonly amount: bigint;
  /** The field source of calldata on the chain. */
  readonly source: 'ethereum_calldata' | 'tron_trigger_smart_contract_data';
}

const PARAMETERS = {
  transfer: ['to:address', 'value:uint256'],
  approve: ['spender:address', 'value:uint256'],
  increaseAllowance: ['spender:address', 'addedValue:uint256'],
  transferFrom: ['from:address', 'to:address', 'value:uint256'],
  // Of contracts that call themselves, such as many tokens and routers.
  multicall: ['data:bytes[]'],
} as const;
const multicall = contractAbi(['function multicall(bytes[] data)']);
// The first 4 bytes of keccak256 of `increaseAllowance(address,uint256)`, of OpenZeppelin's tokens.
const INCREASE_ALLOWANCE = '39509351';

function markOf(name: keyof typeof PARAMETERS, source: TokenTerms['source']): ConditionInput {
  const inputs = PARAMETERS[name].map((each) => {
    const [parameter, type] = each.split(':');
    return { name: parameter, type };
  });
  const abi = [{ type: 'function', name, stateMutability: 'nonpayable', inputs, outputs: [] }];
  return { field_source: source, field: 'function_name', operator: 'eq', value: name, abi };
}

/** The functions by which an account gives tokens away, a transfer first. */
export function tokenFunctions({ owner, to, amount, source }: TokenTerms): readonly TokenFunction[] {
  const approval = encodeTokenCall({ name: 'approve', spender: to, amount });
  const increase = hexToBytes(INCREASE_ALLOWANCE + bytesTo0xHex(approval).slice(10));
  const transfer = encodeTokenCall({ name: 'transfer', to, amount });
  const functions = {
    transfer,
    approve: approval,
    increaseAllowance: increase,
    transferFrom: encodeTokenCall({ name: 'transferFrom', from: owner, to, amount }),
    multicall: multicall.encodeCall('multicall', [bytesTo0xHex(transfer)]),
  };
  return Object.entries(functions).map(([name, data]) => ({
    name,
    data: bytesTo0xHex(data),
    marks: [markOf(name as keyof typeof PARAMETERS, source)],
  }));
}
