import { isValidBIC, ValidationErrorsIBAN, validateIBAN } from 'ibantools';

/** Whether a text is a Brazilian tax number: a CPF of 11 digits or a CNPJ of 14, with valid check digits. */
export function isTaxNumber(text: string): boolean {
  if (/^(\d)\1*$/.test(text)) return false;
  if (/^\d{11}$/.test(text)) return hasCheckDigits(text, 9, cpfWeight);
  return /^\d{14}$/.test(text) && hasCheckDigits(text, 12, cnpjWeight);
}

// Counted from the right, the digits have the weights 2, 3, 4 and so on. In a CNPJ, the weights start again after 9.
const cpfWeight = (fromRight: number): number => fromRight + 2;
const cnpjWeight = (fromRight: number): number => (fromRight % 8) + 2;

/** Source: Receita Federal, modulo 11: d = 11 - (sum of weighted digits mod 11), or 0 if that is above 9. */
function hasCheckDigits(text: string, length: number, weight: (fromRight: number) => number): boolean {
  return [length, length + 1].every((end) => {
    const digits = [...text.slice(0, end)].map(Number);
    const sum = digits.reduce((total, digit, at) => total + digit * weight(end - 1 - at), 0);
    const rest = sum % 11;
    return Number(text[end]) === (rest < 2 ? 0 : 11 - rest);
  });
}

/** Whether a text is a Pix key: a tax number, a phone number, an email address or a random key. */
export function isPixKey(text: string): boolean {
  if (/^\d+$/.test(text)) return isTaxNumber(text);
  // Source: DICT API of the Banco Central, Key.
  if (/^\+[1-9]\d{1,14}$/.test(text)) return true;
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return true;
  return text.length <= 77 && /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/.test(text);
}

// A payload format indicator, then data objects. The last object is the CRC over everything before its value.
const BR_CODE = /^000201.*6304[0-9A-F]{4}$/s;

/** Whether a text is a BR code: the text of a Pix QR code with a valid checksum. */
export function isBrCode(text: string): boolean {
  if (!BR_CODE.test(text)) return false;
  return crc16(text.slice(0, -4)) === Number.parseInt(text.slice(-4), 16);
}

/** Source: EMV QRCPS merchant-presented mode, §4.7.3: ISO/IEC 13239, polynomial 0x1021, initial value 0xffff. */
function crc16(text: string): number {
  let crc = 0xffff;
  for (const byte of Buffer.from(text, 'utf8')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}

/** The fault of an IBAN; undefined for a valid IBAN. The text does not repeat the number, which is personal. */
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

// Source: ABA routing number policy. The weights repeat over the nine digits.
const WEIGHTS = [3, 7, 1];

/** Whether a text is a US routing number: nine digits, weighted sum divisible by 10. */
export function isRoutingNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || text === '000000000') return false;
  // 3(d1 + d4 + d7) + 7(d2 + d5 + d8) + (d3 + d6 + d9) mod 10 = 0
  const sum = [...text].reduce((total, digit, at) => total + Number(digit) * WEIGHTS[at % 3]!, 0);
  return sum % 10 === 0;
}
