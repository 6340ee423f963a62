import { bytesToHex } from '../../src/engine/crypto/encoding.ts';

// The opcodes that the contracts below use. Source: Ethereum yellow paper, appendix H.
const opcodes: Readonly<Record<string, number>> = {
  stop: 0x00,
  add: 0x01,
  sub: 0x03,
  lt: 0x10,
  eq: 0x14,
  iszero: 0x15,
  shl: 0x1b,
  shr: 0x1c,
  keccak256: 0x20,
  address: 0x30,
  caller: 0x33,
  callvalue: 0x34,
  calldataload: 0x35,
  calldatasize: 0x36,
  calldatacopy: 0x37,
  pop: 0x50,
  mstore: 0x52,
  sload: 0x54,
  sstore: 0x55,
  jump: 0x56,
  jumpi: 0x57,
  gas: 0x5a,
  call: 0xf1,
  return: 0xf3,
  revert: 0xfd,
  swap1: 0x90,
};

/** Assembles EVM code from a listing of opcodes. `0x…` pushes itself, and `@label` pushes the position of `label:`. */
function assemble(listing: string): `0x${string}` {
  const words = listing.replaceAll(/;.*/g, '').split(/\s+/).filter(Boolean);
  const labels = new Map<string, number>();
  let size = 0;
  for (const word of words) {
    if (word.endsWith(':')) labels.set(word.slice(0, -1), size);
    size += sizeOf(word);
  }
  const bytes = words.flatMap((word) => encode(word, labels));
  return `0x${bytesToHex(Uint8Array.from(bytes))}`;
}

function sizeOf(word: string): number {
  if (word.startsWith('@')) return 3;
  return word.startsWith('0x') ? 1 + (word.length - 2) / 2 : 1;
}

function encode(word: string, labels: ReadonlyMap<string, number>): number[] {
  if (word.endsWith(':')) return [0x5b];
  if (word.startsWith('@')) {
    const target = labels.get(word.slice(1));
    if (target === undefined) throw new Error(`no label ${word}`);
    return [0x61, target >> 8, target & 0xff];
  }
  if (word.startsWith('0x')) {
    const data = [...Buffer.from(word.slice(2), 'hex')];
    return [0x5f + data.length, ...data];
  }
  const dup = /^dup(\d+)$/.exec(word);
  const opcode = dup === null ? opcodes[word] : 0x7f + Number(dup[1]);
  if (opcode === undefined) throw new Error(`no opcode ${word}`);
  return [opcode];
}

/** A minimal ERC-20: balances are at the slot of the owner's address, allowances at keccak256(owner, spender). */
export const tokenCode = assemble(`
  callvalue @fail jumpi
  0x00 calldataload 0xe0 shr
  dup1 0xa9059cbb eq @transfer jumpi
  dup1 0x23b872dd eq @transferFrom jumpi
  dup1 0x095ea7b3 eq @approve jumpi
  dup1 0x70a08231 eq @balanceOf jumpi
  dup1 0xdd62ed3e eq @allowance jumpi
  dup1 0x313ce567 eq @decimals jumpi
  @fail jump
transfer:
  0x24 calldataload 0x04 calldataload caller @move jump
transferFrom:
  0x04 calldataload 0x00 mstore caller 0x20 mstore 0x40 0x00 keccak256   ; slot
  dup1 sload 0x44 calldataload dup1 dup3 lt @fail jumpi                  ; slot allowed amount
  swap1 sub swap1 sstore
  0x44 calldataload 0x24 calldataload 0x04 calldataload @move jump
move:                                                                    ; amount to from
  dup1 sload dup4 dup2 lt @fail jumpi                                    ; amount to from held
  dup4 swap1 sub swap1 sstore                                            ; amount to
  dup1 sload dup3 add swap1 sstore
  @true jump
approve:
  caller 0x00 mstore 0x04 calldataload 0x20 mstore
  0x24 calldataload 0x40 0x00 keccak256 sstore
  @true jump
balanceOf:
  0x04 calldataload sload @answer jump
allowance:
  0x04 calldataload 0x00 mstore 0x24 calldataload 0x20 mstore 0x40 0x00 keccak256 sload @answer jump
decimals:
  0x06 @answer jump
true:
  0x01 @answer jump
answer:
  0x00 mstore 0x20 0x00 return
fail:
  0x00 0x00 revert
`);

/** Runs batches according to ERC-7821: only the account itself may call it, and either all calls succeed or none. */
export const executorCode = assemble(`
  calldatasize iszero @done jumpi
  0x00 calldataload 0xe0 shr 0xe9ae5c53 eq iszero @fail jumpi
  0x04 calldataload 0x01${'00'.repeat(31)} eq iszero @fail jumpi
  caller address eq iszero @fail jumpi
  0x24 calldataload 0x24 add                        ; where abi.encode(Call[]) begins
  dup1 calldataload add                             ; the array
  dup1 calldataload swap1 0x20 add 0x00             ; count base index
next:
  dup1 dup4 eq @done jumpi
  dup1 0x05 shl dup3 add calldataload dup3 add      ; count base index call
  dup1 0x40 add calldataload dup2 add               ; … call data
  dup1 calldataload                                 ; … call data length
  dup1 dup3 0x20 add 0x00 calldatacopy
  0x00 0x00 dup3 0x00
  dup7 0x20 add calldataload                        ; value
  dup8 calldataload                                 ; to
  dup1 iszero @self jumpi
  @go jump
self:
  pop address
go:
  gas call iszero @fail jumpi
  pop pop pop 0x01 add @next jump
done:
  stop
fail:
  0x00 0x00 revert
`);
