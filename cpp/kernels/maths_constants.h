// Numbers behind kernels/maths.h: range limits, split constants and polynomial coefficients.
#pragma once

#include <cstdint>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
struct Maths;

template <>
struct Maths<float> {
  static constexpr int kMantissaBits = 23, kBias = 127;
  static constexpr std::int32_t kMantissaMask = 0x7fffff;
  static constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  static constexpr float kDenormalScale = 33554432.0f, kDenormalExponent = 25;
  static constexpr float kExpLow = -104.0f, kExpHigh = 90.0f;
  static constexpr float kInverseLn2 = 1.442695041f, kSqrtHalf = 0.707106781f;
  static constexpr float kLn2 = 0.693147181f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kPi = 3.14159274f, kPiLow = -8.74227800e-8f;
  static constexpr float kTwoOverPi = 0.636619772f, kTrigLimit = 8000.0f;
  static constexpr float kHalfPi[] = {1.5703125f, 4.83512878418e-4f, 3.13855707645e-7f,
                                      6.07710050651e-11f};
  static constexpr float kTanPi8 = 0.414213562f, kTan3Pi8 = 2.41421356f;
  static constexpr float kSquareLimit = 1e4f, kErfLimit = 4.0f;
  static constexpr float kExp[] = {0.500000001f,   0.166666667f, 0.0416664649f,
                                   0.00833331093f, 0.001393365f, 0.000198909908f};
  static constexpr float kLog[] = {0.666666666f, 0.400001222f, 0.285507786f, 0.233316145f};
  static constexpr float kSin[] = {-0.166666667f, 0.00833333187f, -0.000198400863f, 2.72498647e-6f};
  static constexpr float kCos[] = {0.0416666667f, -0.00138888877f, 2.48006e-5f, -2.73009082e-7f};
  static constexpr float kAtan[] = {-0.333333318f, 0.199995388f, -0.142638971f, 0.107430997f,
                                    -0.0644983522f};
  static constexpr float kErf[] = {1.12837917f,    -0.376126267f,    0.112835947f,  -0.026854212f,
                                   0.00518908742f, -0.000801686429f, 7.87587506e-5f};
  static constexpr float kErfc[] = {-0.000164270287f, 0.570124243f, 1.03499288f,  2.80832948f,
                                    -1.76368889f,     18.281353f,   -30.4987796f, 15.4697723f};
};

template <>
struct Maths<double> {
  static constexpr int kMantissaBits = 52, kBias = 1023;
  static constexpr std::int64_t kMantissaMask = 0xfffffffffffff;
  static constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kDenormalScale = 18014398509481984.0, kDenormalExponent = 54;
  static constexpr double kExpLow = -746.0, kExpHigh = 712.0;
  static constexpr double kInverseLn2 = 1.4426950408889634074, kSqrtHalf = 0.7071067811865475244;
  static constexpr double kLn2 = 0.69314718055994530942, kLn2High = 0.6931471803691238164902;
  static constexpr double kLn2Low = 1.908214929270587816144e-10;
  static constexpr double kPi = 3.141592653589793116, kPiLow = 1.2246467991473531772e-16;
  static constexpr double kTwoOverPi = 0.63661977236758134308, kTrigLimit = 1e6;
  static constexpr double kHalfPi[] = {1.570796326734125614166, 6.077100506303965976596e-11,
                                       2.022266248711166455796e-21, 8.478427660368899643959e-32};
  static constexpr double kTanPi8 = 0.4142135623730950488, kTan3Pi8 = 2.4142135623730950488;
  static constexpr double kSquareLimit = 1e9, kErfLimit = 6.0;
  static constexpr double kExp[] = {0.5,
                                    0.16666666666666671,
                                    0.0416666666666666698,
                                    0.00833333333332613513,
                                    0.00138888888888837483,
                                    0.000198412698748206253,
                                    2.48015873255477412e-5,
                                    2.75572554002064244e-6,
                                    2.75572736431102953e-7,
                                    2.51052170047207452e-8,
                                    2.09146869680868772e-9};
  static constexpr double kLog[] = {
      0.666666666666666665, 0.400000000000008832, 0.28571428570799785,  0.222222223925810451,
      0.181817955475211362, 0.153862447376216666, 0.132686383692668239, 0.130880348509275538};
  // The series of artanh: 2/3 in two parts, and 2/5, 2/7, …
  static constexpr double kTwoThirds = 0.6666666666666666, kTwoThirdsLow = 3.7007434154171886e-17;
  static constexpr double kArtanh[] = {0.4,
                                       0.2857142857142857,
                                       0.2222222222222222,
                                       0.18181818181818182,
                                       0.15384615384615385,
                                       0.13333333333333333,
                                       0.11764705882352941,
                                       0.10526315789473684,
                                       0.09523809523809523,
                                       0.08695652173913043,
                                       0.08};
  static constexpr double kSin[] = {-0.166666666666666667,    0.00833333333333333149,
                                    -0.000198412698412650602, 2.75573192193354534e-6,
                                    -2.50521062311579055e-8,  1.60585314145890108e-10,
                                    -7.58668507009126716e-13};
  static constexpr double kCos[] = {0.0416666666666666667,  -0.00138888888888888879,
                                    2.48015873015846438e-5, -2.755731922140076e-7,
                                    2.08767557903633961e-9, -1.14704607739693246e-11,
                                    4.74586520378745511e-14};
  static constexpr double kAtan[] = {
      -0.333333333333333332,  0.199999999999998025,  -0.142857142856593273,  0.111111111051067051,
      -0.0909090875107663588, 0.0769229630497447006, -0.0666642362806925758, 0.058789145444006217,
      -0.0523034787301607418, 0.0455110812632517188, -0.0345580925514137961, 0.0162719447516240604};
  static constexpr double kErf[] = {
      1.12837916709551257,     -0.376126389031837481,   0.112837916709548787,
      -0.0268661706450767932,  0.00522397762481801447,  -0.000854832698083378991,
      0.000120553311116427109, -1.49255952668311816e-5, 1.6461000484121368e-6,
      -1.6350312701054695e-7,  1.46597752740474358e-8,  -1.13728488567916737e-9,
      5.9571761477489114e-11};
  static constexpr double kErfc[] = {
      1.28667077544548039e-8, 0.564188664193106902, 1.12840816241434782,   1.97415053437153044,
      2.82597421322150883,    2.66809749627807655,  -0.708562127904714338, 0.307897499699435473,
      -85.9487410705711341,   469.440883957723114,  -2174.11428147957227,  7763.94971609184982,
      -18742.8891739894717,   29794.9438051242117,  -30324.6832425578964,  18111.2478056896239,
      -4868.71961528729447};
};

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
