import { ApiError } from './errors.ts';

interface LocatedIssue {
  readonly in: string;
  readonly pointer: string;
  readonly message: string;
}

/**
 * Converts an error about a part of the request body: its JSON pointers then refer to the whole body.
 *
 * @param pointer JSON pointer to that part.
 */
export function relocateIssues(error: unknown, pointer: string): unknown {
  if (!(error instanceof ApiError) || !Array.isArray(error.data?.issues)) return error;
  const issues = (error.data.issues as LocatedIssue[]).map((issue) =>
    issue.in === 'body' ? { ...issue, pointer: pointer + issue.pointer } : issue,
  );
  const message = error.message.startsWith('/') ? pointer + error.message : error.message;
  return new ApiError(error.code, message, {
    cause: error,
    data: { ...error.data, issues },
    ...(error.headers === undefined ? {} : { headers: error.headers }),
  });
}
