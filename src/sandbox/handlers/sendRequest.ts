import type { Handler } from '../control-plane.ts';
import { sentRequest } from '../requests/sent-request.ts';

export const run: Handler<'sendRequest'> = async ({ body }, { ownApi, redaction, signal }) => {
  const { operation, path = {}, query = {}, headers = {}, sign_as: signAs = [] } = body;
  const call = { operation, path, query, headers, signAs, isRecorded: body.is_recorded !== false };
  return sentRequest(await ownApi.call({ ...call, body: body.body }, signal), operation, redaction);
};
