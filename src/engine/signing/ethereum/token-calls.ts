import { bytesToHex, hexToBytes } from '../../crypto/encoding.ts';

/** A state-changing call of an ERC-20 token. Addresses are lower-case 0x hex. */
export type TokenCall =
  | { readonly name: 'transfer'; readonly to: string; readonly amount: bigint }
  | { readonly name: 'approve'; readonly spender: string; readonly amount: bigint }
  | { readonly name: 'transferFrom'; readonly from: string; readonly to: string; readonly amount: bigint };

/** A read-only call of an ERC-20 token. */
export type TokenQuery =
  | { readonly name: 'balanceOf'; readonly owner: string }
  | { readonly name: 'allowance'; readonly owner: string; readonly spender: string }
  | { readonly name: 'decimals' | 'symbol' | 'name' | 'totalSupply' };

// The first 4 bytes of keccak256 of the function signature.
const SELECTORS = {
  transfer: 'a9059cbb',
  approve: '095ea7b3',
  transferFrom: '23b872dd',
  balanceOf: '70a08231',
  allowance: 'dd62ed3e',
  decimals: '313ce567',
  symbol: '95d89b41',
  name: '06fdde03',
  totalSupply: '18160ddd',
} as const;

/** Calldata of an ERC-20 call. Source: ERC-20, ABI encoding of static words. */
export function encodeTokenCall(call: TokenCall | TokenQuery): Uint8Array {
  return hexToBytes(SELECTORS[call.name] + wordsOf(call).join(''));
}

/** Decodes an ERC-20 call; undefined for other calldata and for trailing bytes. */
export function decodeTokenCall(data: Uint8Array): TokenCall | undefined {
  const words = readWords(data);
  if (words === undefined) return undefined;
  const [selector, first = '', second = '', third = ''] = words;
  const size = words.length - 1;
  if (selector === SELECTORS.transfer && size === 2 && isAddress(first)) {
    return { name: 'transfer', to: address(first), amount: BigInt(`0x${second}`) };
  }
  if (selector === SELECTORS.approve && size === 2 && isAddress(first)) {
    return { name: 'approve', spender: address(first), amount: BigInt(`0x${second}`) };
  }
  if (selector === SELECTORS.transferFrom && size === 3 && isAddress(first) && isAddress(second)) {
    return { name: 'transferFrom', from: address(first), to: address(second), amount: BigInt(`0x${third}`) };
  }
  return undefined;
}

function wordsOf(call: TokenCall | TokenQuery): string[] {
  if (call.name === 'transfer') return [addressWord(call.to), numberWord(call.amount)];
  if (call.name === 'approve') return [addressWord(call.spender), numberWord(call.amount)];
  if (call.name === 'transferFrom')
    return [addressWord(call.from), addressWord(call.to), numberWord(call.amount)];
  if (call.name === 'balanceOf') return [addressWord(call.owner)];
  if (call.name === 'allowance') return [addressWord(call.owner), addressWord(call.spender)];
  return [];
}

// selector || 32-byte words
function readWords(data: Uint8Array): readonly string[] | undefined {
  if (data.length < 4 || data.length > 100 || (data.length - 4) % 32 !== 0) return undefined;
  const hex = bytesToHex(data);
  return [hex.slice(0, 8), ...(hex.slice(8).match(/.{64}/g) ?? [])];
}

function isAddress(word: string): boolean {
  return word.startsWith('0'.repeat(24));
}

function address(word: string): string {
  return `0x${word.slice(24)}`;
}

function addressWord(text: string): string {
  return text.slice(2).toLowerCase().padStart(64, '0');
}

function numberWord(value: bigint): string {
  return value.toString(16).padStart(64, '0');
}
