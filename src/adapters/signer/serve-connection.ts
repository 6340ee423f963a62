import type { Duplex } from 'node:stream';
import type { KeyVault } from '../../ports/key-vault.ts';
import { createFrameWriter } from './frame-writer.ts';
import {
  createFrameReader,
  encodeFrame,
  type Frame,
  FrameError,
  frameKinds,
  type Message,
} from './frames.ts';
import { answers, MessageError, operationNames } from './operations.ts';
import { toSentError } from './signer-errors.ts';

/** CHOICE: more than a server has requests that sign at once. */
export const MAX_IN_FLIGHT = 4_096;

export interface ServedVault {
  readonly vault: KeyVault;
  /** The master keys that open; a server that reconnects expects the same ones. */
  readonly masterKeyIds: readonly string[];
  /** For what is unexpected. The fields contain no secrets. */
  readonly report: (fields: object, message: string) => void;
}

/** Says why there is nothing to serve, and calls `then` when that is sent. */
export function sendRefusal(stream: Duplex, faults: readonly string[], then: () => void): void {
  stream.on('error', then);
  stream.end(
    encodeFrame({ kind: frameKinds.failure, id: 0, operation: 0, parts: [], json: { faults } }),
    then,
  );
}

/** Answers the calls of one connection until it ends. What cannot be read ends the connection. */
export function serveConnection(stream: Duplex, { vault, masterKeyIds, report }: ServedVault): void {
  const reader = createFrameReader();
  const writer = createFrameWriter(stream);
  let inFlight = 0;

  function send(frame: Frame): void {
    writer.add(encodeFrame(frame));
  }

  async function answer({ id, operation, parts, json }: Frame): Promise<void> {
    const name = operationNames[operation];
    if (name === undefined) throw new MessageError(`expected the number of an operation, got ${operation}`);
    const result: Message = await answers[name](vault, { parts, json });
    send({ ...result, kind: frameKinds.result, id, operation: 0 });
    // What left as it is was copied into the frame.
    if (name === 'open') result.parts[0]?.fill(0);
  }

  function fail({ id, operation }: Frame, error: unknown): void {
    let sent: object | undefined = toSentError(error);
    if (sent === undefined) {
      // NOTE: the message may quote a secret, so only the kind of error is reported.
      const { name } = error as Error;
      report({ operation: operationNames[operation] ?? operation, error: name }, 'a call failed');
      sent = { code: error instanceof MessageError ? 'protocol' : 'internal' };
    }
    send({ kind: frameKinds.failure, id, operation: 0, parts: [], json: sent });
  }

  async function handle(frame: Frame): Promise<void> {
    inFlight += 1;
    try {
      await answer(frame);
    } catch (error) {
      fail(frame, error);
    } finally {
      inFlight -= 1;
    }
  }

  stream.on('data', (chunk: Buffer) => {
    try {
      for (const frame of reader.push(chunk)) {
        if (frame.kind !== frameKinds.call) throw new FrameError('expected a call');
        if (inFlight >= MAX_IN_FLIGHT) throw new FrameError('too many calls at once');
        void handle(frame);
      }
    } catch (error) {
      report({ error: (error as Error).message }, 'a connection sent what cannot be read');
      stream.destroy();
    }
  });
  stream.on('error', () => stream.destroy());
  const { currentMasterKeyId, loginApps = [], contracts } = vault;
  const json = { currentMasterKeyId, masterKeyIds, loginApps, contracts };
  send({ kind: frameKinds.hello, id: 0, operation: 0, parts: [], json });
}
