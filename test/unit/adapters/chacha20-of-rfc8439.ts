/** The key stream of ChaCha20 (RFC 8439 §2.3) from block 0 with an all-zero nonce, written from the text. */
export function chacha20(key: Uint8Array, length: number): Uint8Array {
  const words = new DataView(key.buffer, key.byteOffset, 32);
  const start = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];
  for (let index = 0; index < 8; index += 1) start.push(words.getUint32(index * 4, true));
  start.push(0, 0, 0, 0);
  const stream = new Uint8Array(Math.ceil(length / 64) * 64);
  for (let block = 0; block * 64 < length; block += 1) {
    start[12] = block;
    const state = scramble(start);
    const view = new DataView(stream.buffer, block * 64, 64);
    for (const [index, word] of state.entries())
      view.setUint32(index * 4, (word + start[index]!) >>> 0, true);
  }
  return stream.subarray(0, length);
}

const quarters = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

function scramble(start: readonly number[]): number[] {
  const state = [...start];
  const mix = (sum: number, add: number, turn: number, by: number): void => {
    state[sum] = (state[sum]! + state[add]!) >>> 0;
    const mixed = (state[turn]! ^ state[sum]!) >>> 0;
    state[turn] = ((mixed << by) | (mixed >>> (32 - by))) >>> 0;
  };
  for (let round = 0; round < 10; round += 1) {
    for (const [a, b, c, d] of quarters) {
      mix(a, b, d, 16);
      mix(c, d, b, 12);
      mix(a, b, d, 8);
      mix(c, d, b, 7);
    }
  }
  return state;
}
