import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  createFrameReader,
  encodeFrame,
  type Frame,
  frameKinds,
  MAX_FRAME_BYTES,
} from '../../../src/keys/frames.ts';

const frames = fc.record({
  kind: fc.constantFrom(...Object.values(frameKinds)),
  id: fc.integer({ min: 0, max: 0xffff_ffff }),
  operation: fc.integer({ min: 0, max: 255 }),
  parts: fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 8 }),
  json: fc.oneof(
    fc.constant(undefined),
    fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text) as unknown),
  ),
});

const plain = ({ kind, id, operation, parts, json }: Frame) => ({
  ...{ kind, id, operation, json },
  parts: parts.map((part) => [...part]),
});

test('frames come out as they went in, however the stream is torn', () => {
  fc.assert(
    fc.property(fc.array(frames, { maxLength: 6 }), fc.array(fc.nat({ max: 2_000 })), (sent, cuts) => {
      const stream = Buffer.concat(sent.map(encodeFrame));
      const at = [...new Set(cuts.map((cut) => cut % (stream.length + 1)))].sort((a, b) => a - b);
      const reader = createFrameReader();
      const ends = [...at, stream.length];
      const got = ends.flatMap((end, index) => reader.push(stream.subarray(ends[index - 1] ?? 0, end)));
      expect(got.map(plain)).toEqual(sent.map(plain));
    }),
    { numRuns: 200 },
  );
});

test('any bytes are frames or an error, never a wait for more than a frame', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4, maxLength: 100 }), (bytes) => {
      const reader = createFrameReader();
      try {
        reader.push(bytes);
      } catch (error) {
        expect((error as Error).name).toBe('FrameError');
        return;
      }
      expect(Buffer.from(bytes).readUInt32BE()).toBeLessThanOrEqual(MAX_FRAME_BYTES);
    }),
    { numRuns: 500 },
  );
});

const good = encodeFrame({ kind: frameKinds.call, id: 1, operation: 0, parts: [Buffer.of(1, 2)], json: {} });
const changed = (at: number, byte: number): Buffer => {
  const bytes = Buffer.from(good);
  bytes[at] = byte;
  return bytes;
};

test.each([
  ['a frame that is too long', Buffer.from('7fffffff', 'hex'), 'expected a frame of at most'],
  ['one that is too short', Buffer.from('0000000101', 'hex'), 'expected a frame of at least'],
  ['another version', changed(4, 2), 'expected version 1 of the protocol, got 2'],
  ['another kind', changed(5, 9), 'expected a kind of frame'],
  ['too many byte strings', changed(11, 9), 'expected at most 8 byte strings'],
  ['a byte string beyond the end', changed(14, 255), 'ends after its frame'],
  ['no JSON at the end', changed(good.length - 1, 0x2c), 'expected JSON'],
])('refused is %s', (_, bytes, message) => {
  expect(() => createFrameReader().push(bytes)).toThrow(message);
});

test('a long frame is not started', () => {
  const parts = [new Uint8Array(MAX_FRAME_BYTES)];
  expect(() => encodeFrame({ kind: frameKinds.call, id: 1, operation: 0, parts, json: {} })).toThrow(
    'at most',
  );
});
