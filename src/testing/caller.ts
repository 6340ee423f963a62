import { createPrivateKey, type KeyObject } from 'node:crypto';
import { operations } from '../generated/operations.ts';
import { buildRequest } from '../tools/client/call-operation.ts';
import type { Connection } from './connection.ts';
import {
  type Answer,
  type Caller,
  type CallOptions,
  CallRefusedError,
  type OperationId,
  type Operations,
  type Refusal,
  type Signer,
} from './types.ts';

/** Converts the key to a `node:crypto` key. */
function keyOf({ privateKey }: Pick<Signer, 'privateKey'>): KeyObject {
  return createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
}

interface AnyInput {
  readonly path?: object | undefined;
  readonly query?: object | undefined;
  readonly body?: unknown;
}

/**
 * Creates a caller that authenticates with the app's secret and adds the signatures of `signers` to operations that
 * accept them.
 *
 * @param userToken an access token, which replaces the secret in operations that accept users' tokens.
 */
export function callerOf(
  connection: Connection,
  signers: readonly Pick<Signer, 'privateKey'>[],
  userToken?: string,
): Caller {
  const keys = signers.map(keyOf);
  const attempt = async <Id extends OperationId>(
    id: Id,
    input: AnyInput = {},
    options: CallOptions = {},
  ): Promise<Answer<Id>> => {
    const operation = operations[id];
    const { headers: others, ...rest } = options;
    const request = buildRequest(connection.place(), operation, {
      input: {
        path: (input.path ?? {}) as Record<string, string>,
        query: queryOf(input.query),
        body: input.body,
      },
      headers: {
        ...(userToken === undefined || operation.security !== 'app-or-user' ? {} : { userToken }),
        ...rest,
        signers: operation.signed ? keys : [],
        ...(others === undefined ? {} : { others }),
      },
    });
    const { status, headers, text } = await connection.send(request);
    const isFile = operation.fileType !== undefined && status < 400;
    const body: unknown = text === '' ? undefined : isFile ? text : JSON.parse(text);
    const requestId = String(headers['x-request-id']);
    const inspectorUrl = `${connection.place().url}/#/requests/${encodeURIComponent(requestId)}`;
    const answer = { operation: id, status, headers, inspectorUrl };
    return status >= 400
      ? { ...answer, error: body as Refusal }
      : { ...answer, data: body as Operations[Id]['response'] };
  };
  return {
    attempt,
    async call<Id extends OperationId>(id: Id, input: AnyInput = {}, options: CallOptions = {}) {
      const { status, error, data } = await attempt(id, input, options);
      if (error !== undefined) throw new CallRefusedError(id, status, error);
      return data as Operations[Id]['response'];
    },
  };
}

function queryOf(query: object = {}): [string, string][] {
  return Object.entries(query).flatMap(([name, value]) =>
    [value].flat().flatMap((item): [string, string][] => (item === undefined ? [] : [[name, String(item)]])),
  );
}
