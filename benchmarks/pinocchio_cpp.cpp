// SPDX-License-Identifier: Apache-2.0
// Time of Pinocchio's functions, called from C++: see pinocchio_cpp.py.
//
//     pinocchio_cpp MODEL STATES COUNT ROUNDS
//
// MODEL is a text, as pinocchio_cpp.py writes it: the number of joints; of each its parent, its kind, its
// axis, its placement (R by rows, p), and its body's mass, centre of mass and inertia about it (by rows). The
// wheels lack the headers that reading a URDF needs, and to read Pinocchio's own archives takes minutes to
// compile. STATES is a file of COUNT states: q, u, and accelerations or torques, all float64. Prints, for each
// function, its name, the least time of a call in ROUNDS passes through the states [ns], and the sum of the
// absolute values of the last result, by which the caller sees that it computed what it should.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

namespace
{

struct State
{
  Eigen::VectorXd q, u, x;
};

template<class Matrix>
Matrix read_matrix(std::istream & file)
{
  Matrix matrix;
  for (int i = 0; i < matrix.rows(); ++i) {
    for (int j = 0; j < matrix.cols(); ++j) {
      file >> matrix(i, j);
    }
  }
  return matrix;
}

pinocchio::JointModel joint_of_kind(const std::string & kind, const Eigen::Vector3d & axis)
{
  if (kind == "JointModelFreeFlyer") return pinocchio::JointModelFreeFlyer();
  if (kind == "JointModelRX") return pinocchio::JointModelRX();
  if (kind == "JointModelRY") return pinocchio::JointModelRY();
  if (kind == "JointModelRZ") return pinocchio::JointModelRZ();
  if (kind == "JointModelPX") return pinocchio::JointModelPX();
  if (kind == "JointModelPY") return pinocchio::JointModelPY();
  if (kind == "JointModelPZ") return pinocchio::JointModelPZ();
  if (kind == "JointModelRevoluteUnaligned") return pinocchio::JointModelRevoluteUnaligned(axis);
  if (kind == "JointModelPrismaticUnaligned") return pinocchio::JointModelPrismaticUnaligned(axis);
  throw std::invalid_argument("no joint is called " + kind);
}

pinocchio::Model read_model(const char * path)
{
  std::ifstream file(path);
  pinocchio::Model model;
  int count = 0;
  file >> count;
  for (int k = 0; k < count; ++k) {
    pinocchio::JointIndex parent;
    std::string kind;
    file >> parent >> kind;
    const auto axis = read_matrix<Eigen::Vector3d>(file);
    const auto R = read_matrix<Eigen::Matrix3d>(file);
    const auto p = read_matrix<Eigen::Vector3d>(file);
    double mass;
    file >> mass;
    const auto center = read_matrix<Eigen::Vector3d>(file);
    const auto inertia = read_matrix<Eigen::Matrix3d>(file);
    const auto joint = model.addJoint(
      parent, joint_of_kind(kind, axis), pinocchio::SE3(R, p), "joint_" + std::to_string(k));
    model.appendBodyToJoint(
      joint, pinocchio::Inertia(mass, center, inertia), pinocchio::SE3::Identity());
  }
  if (!file) {
    throw std::invalid_argument(std::string("too few words in ") + path);
  }
  return model;
}

std::vector<State> read_states(const char * path, int count, const pinocchio::Model & model)
{
  std::ifstream file(path, std::ios::binary);
  std::vector<State> states(count);
  for (State & state : states) {
    state.q.resize(model.nq);
    state.u.resize(model.nv);
    state.x.resize(model.nv);
    for (Eigen::VectorXd * vector : {&state.q, &state.u, &state.x}) {
      file.read(reinterpret_cast<char *>(vector->data()), vector->size() * sizeof(double));
    }
  }
  if (!file) {
    throw std::invalid_argument(std::string("too few numbers in ") + path);
  }
  return states;
}

template<class Function, class Sum>
void report(
  const char * name, const std::vector<State> & states, int rounds, Function function, Sum sum)
{
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    for (const State & state : states) {
      function(state);
    }
    const std::chrono::duration<double, std::nano> passed = Clock::now() - start;
    best = std::min(best, passed.count() / states.size());
  }
  std::cout << name << " " << best << " " << std::setprecision(17) << sum() << std::endl;
}

}  // namespace

int main(int argc, char ** argv)
{
  if (argc != 5) {
    std::cerr << "usage: pinocchio_cpp MODEL STATES COUNT ROUNDS\n";
    return 2;
  }
  const pinocchio::Model model = read_model(argv[1]);
  pinocchio::Data data(model);
  const std::vector<State> states = read_states(argv[2], std::atoi(argv[3]), model);
  const int rounds = std::atoi(argv[4]);

  report(
    "aba", states, rounds, [&](const State & s) { pinocchio::aba(model, data, s.q, s.u, s.x); },
    [&] { return data.ddq.cwiseAbs().sum(); });
  report(
    "rnea", states, rounds, [&](const State & s) { pinocchio::rnea(model, data, s.q, s.u, s.x); },
    [&] { return data.tau.cwiseAbs().sum(); });
  // C++ programs need not fill the lower triangle; from Python it is filled.
  report(
    "crba", states, rounds, [&](const State & s) { pinocchio::crba(model, data, s.q); },
    [&] {
      const Eigen::MatrixXd M = data.M.selfadjointView<Eigen::Upper>();
      return M.cwiseAbs().sum();
    });
  report(
    "regressor", states, rounds,
    [&](const State & s) { pinocchio::computeJointTorqueRegressor(model, data, s.q, s.u, s.x); },
    [&] { return data.jointTorqueRegressor.cwiseAbs().sum(); });
  return 0;
}
