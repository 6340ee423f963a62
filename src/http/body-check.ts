import type { RequestValidators } from './operation.ts';
import { bodyFault } from './validation-issues.ts';

/** Judges a body that does not come as the body of its own operation but as a part of something else. */
export type CheckBody = (operationId: string, body: unknown, at: string) => void;

/** Makes a check whose refusals, `invalid_data`, point below `at`. */
export function createBodyCheck(validators: Readonly<Record<string, RequestValidators>>): CheckBody {
  return (operationId, body, at) => {
    const validate = validators[operationId]?.body;
    if (validate === undefined || validate(body)) return;
    const errors = validate.errors ?? [];
    throw bodyFault(errors.map((error) => ({ ...error, instancePath: at + error.instancePath })));
  };
}
