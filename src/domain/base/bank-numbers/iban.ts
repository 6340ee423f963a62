import { isValidBIC, ValidationErrorsIBAN, validateIBAN } from 'ibantools';

/** What is wrong with an IBAN; undefined when it is valid. The number is not repeated. */
export function faultOfIban(text: string): string | undefined {
  const { errorCodes } = validateIBAN(text);
  if (errorCodes.length === 0) return undefined;
  const isChecksum = errorCodes.every((code) => code === ValidationErrorsIBAN.WrongIBANChecksum);
  return isChecksum
    ? 'expected an IBAN with valid check digits'
    : 'expected an IBAN in the format of its country, in capitals and without spaces';
}

/** Whether a text is a BIC of 8 or 11 characters, in capitals. */
export function isBic(text: string): boolean {
  return text === text.toUpperCase() && isValidBIC(text);
}
